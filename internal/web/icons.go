package web

import (
	"fmt"
	"html/template"
)

// icons are the drawings of 16 by 16 units, by name.
var icons = map[string]template.HTML{
	"agent":     `<rect x="3" y="5" width="10" height="8" rx="2"/><path d="M8 2.2V5M6 8.6v1M10 8.6v1"/>`,
	"approvals": `<path d="M8 1.8l5 1.9v4c0 3.1-2.1 5.3-5 6.5-2.9-1.2-5-3.4-5-6.5v-4z"/><path d="M5.8 8l1.6 1.6 3-3.2"/>`,
	"attach":    `<path d="M12.8 7.2L7.7 12.3a3 3 0 0 1-4.2-4.2l5.3-5.3a2 2 0 0 1 2.8 2.8l-5.2 5.3a1 1 0 0 1-1.5-1.5l4.7-4.7"/>`,
	"back":      `<path d="M9.800 3.800L5.600 8l4.200 4.200"/>`,
	"book":      `<path d="M3 2.8h7.5a1.8 1.8 0 0 1 1.8 1.8v8.6H4.6A1.6 1.6 0 0 1 3 11.6z"/><path d="M3 11.6a1.6 1.6 0 0 1 1.6-1.6h7.7"/>`,
	"callback":  `<path d="M3 8h7.5M7.5 4.8L10.7 8l-3.2 3.2M13 3v10"/>`,
	"chat":      `<path d="M2.5 3.5h11v7.5h-6l-3 2.5V11h-2z"/>`,
	"check":     `<path d="M3.2 8.4l3.2 3.2 6.4-7"/>`,
	"chevron":   `<path d="M6 3.8L10.2 8 6 12.2"/>`,
	"clock":     `<circle cx="8" cy="8" r="5.8"/><path d="M8 4.8V8l2.2 1.5"/>`,
	"close":     `<path d="M4 4l8 8M12 4l-8 8"/>`,
	"code":      `<path d="M5.3 4.5L1.8 8l3.5 3.5M10.7 4.5L14.2 8l-3.5 3.5"/>`,
	"copy": `<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 ` +
		`4v5A1.5 1.5 0 0 0 4 10.5h1.5"/>`,
	"download": `<path d="M8 2.5v7.5M4.5 7L8 10.5 11.5 7M2.5 13.5h11"/>`,
	"drop":     `<path d="M5.5 2v3M10.5 2v3M3.5 5h9v2.5a4.5 4.5 0 0 1-9 0zM8 12v2.5"/>`,
	"edit":     `<path d="M10.500 3l2.500 2.500L6 12.500l-3 .5.5-3z"/>`,
	"external": `<path d="M9.5 2.500h4v4M13.500 2.500L7.500 8.500M11.500 9.500v4h-9v-9h4"/>`,
	"file":     `<path d="M4 1.8h5l3.2 3.2v9.2H4z"/><path d="M9 1.8V5h3.2"/>`,
	"folder":   `<path d="M2.5 12.5v-9H6l1.500 1.700h6v7.300z"/>`,
	"globe":    `<circle cx="8" cy="8" r="5.8"/><path d="M2.2 8h11.6M8 2.2c3.2 3.5 3.2 8.1 0 11.6M8 2.2c-3.2 3.5-3.2 8.1 0 11.6"/>`,
	"good":     `<path d="M5 7.5V13H3V7.5zM5 7.5L7.5 2.5c1 0 1.7.7 1.7 1.7L8.8 6.5H12a1.3 1.3 0 0 1 1.3 1.5l-.7 4A1.3 1.3 0 0 1 11.3 13H5"/>`,
	"info":     `<circle cx="8" cy="8" r="5.8"/><path d="M8 7.3v3.5M8 5.2h.01"/>`,
	"key":      `<circle cx="5.3" cy="10.7" r="2.8"/><path d="M7.4 8.6l5.8-5.8M10.8 5.2l1.7 1.7"/>`,
	"limits":   `<path d="M6 4h7.5M6 8h7.5M6 12h4M2 4l1 1 1.5-2M2 8l1 1 1.5-2"/>`,
	"lock":     `<rect x="3" y="7" width="10" height="6.5" rx="1.5"/><path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2"/>`,
	"members": `<circle cx="6" cy="5.5" r="2.5"/><path d="M1.8 13.2c.3-2.5 2-3.9 4.2-3.9s3.9 1.4 4.2 3.9M10.8 3.2a2.5 2.5 0 0 1 0 ` +
		`4.6M12 9.7c1.3.5 2 1.7 2.2 3.5"/>`,
	"menu":     `<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>`,
	"more":     `<path d="M3.5 8h.01M8 8h.01M12.5 8h.01"/>`,
	"send":     `<path d="M8 13V3.3M3.8 7.2L8 3l4.2 4.2"/>`,
	"out":      `<path d="M6.5 3H3.500v10h3M7 8h6.500M10.800 5.200L13.500 8l-2.700 2.8"/>`,
	"panel":    `<rect x="2" y="3" width="12" height="10" rx="1.5"/><path d="M10 3v10"/>`,
	"pause":    `<path d="M5.5 3.5v9M10.5 3.5v9"/>`,
	"plus":     `<path d="M8 3.2v9.6M3.2 8h9.6"/>`,
	"poor":     `<path d="M5 8.5V3H3v5.5zM5 8.5l2.5 5c1 0 1.7-.7 1.7-1.7l-.4-2.3H12A1.3 1.3 0 0 0 13.3 8l-.7-4A1.3 1.3 0 0 0 11.3 3H5"/>`,
	"refresh":  `<path d="M13 5.5A5.5 5.5 0 0 0 3 5M13 2.5v3h-3M3 10.5a5.5 5.5 0 0 0 10 .5M3 13.5v-3h3"/>`,
	"search":   `<circle cx="7" cy="7" r="4.2"/><path d="M10.2 10.2l3.300 3.300"/>`,
	"sessions": `<path d="M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01"/>`,
	"skill":    `<path d="M8.8 1.8L3.5 9h4l-.6 5.2L12.5 7h-4z"/>`,
	"stop":     `<rect x="4" y="4" width="8" height="8" rx="1.5"/>`,
	"system":   `<path d="M1.8 8.5h3L6.5 4l3 8 1.7-3.5h3"/>`,
	"theme":    `<circle cx="8" cy="8" r="5.8"/><path d="M8 2.2a5.8 5.8 0 0 1 0 11.6z" fill="currentColor"/>`,
	"tools":    `<path d="M10.2 2.6a3.4 3.4 0 0 0-3.9 4.6L2.6 10.9a1.45 1.45 0 0 0 2.1 2.1L8.4 9.3a3.4 3.4 0 0 0 4.6-3.9L11 7.3 8.7 5z"/>`,
	"trash":    `<path d="M2.500 4.500h11M6 4.500V2.500h4v2M4 4.500l.7 9h6.600l.7-9"/>`,
	"up":       `<path d="M8 13V3.3M3.8 7.2L8 3l4.2 4.2"/>`,
	"updown":   `<path d="M5 6.2l3-3 3 3M5 9.8l3 3 3-3"/>`,
	"usage":    `<path d="M2.5 13.5h11M4.5 11V8M8 11V3.5M11.5 11V6"/>`,
	"user":     `<circle cx="8" cy="5.5" r="2.7"/><path d="M3 13.5c.4-2.8 2.300-4.300 5-4.300s4.600 1.500 5 4.300"/>`,
	"warn":     `<path d="M8 2.2l6.2 11H1.8z"/><path d="M8 6.5v3M8 11.4h.01"/>`,
}

const logoPath = `<path d="M3 3.5h14v10.5h-7.2L5.5 17.5V14H3z"/>`

// icon returns the drawing with a name. Extra classes may follow.
func icon(name string, class ...string) (template.HTML, error) {
	body, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("there is no icon %q", name)
	}
	kind := "i"
	for _, c := range class {
		kind += " " + template.HTMLEscapeString(c)
	}
	return `<svg class="` + template.HTML(kind) + `" viewBox="0 0 16 16" aria-hidden="true">` + body + `</svg>`, nil
}

// logo returns the sign of the product.
func logo() template.HTML {
	return `<svg class="logo" viewBox="0 0 20 20" aria-hidden="true" fill="currentColor">` + logoPath + `</svg>`
}
