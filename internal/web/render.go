package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed templates
var templateFiles embed.FS

// view is the data of a template.
type view struct {
	*page
	Flash *flash
	Data  any
}

// parsePages parses templates/*.html, each with the layout and the parts in templates/parts, once
// for all Apps of a process.
var parsePages = sync.OnceValues(func() (map[string]*template.Template, error) {
	parts, err := template.New("").Funcs(functions()).Funcs(docsFunctions).ParseFS(templateFiles, "templates/parts/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the parts of pages: %w", err)
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]*template.Template)
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".html")
		t, err := parts.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, name)
		}
		if err != nil {
			return nil, fmt.Errorf("parse the page %s: %w", base, err)
		}
		pages[base] = t.Lookup(path.Base(name))
	}
	return pages, nil
})

// render responds with a page.
func (a *App) render(w http.ResponseWriter, p *page, name string, data any) error {
	return a.renderStatus(w, p, http.StatusOK, name, data)
}

// renderStatus responds with a page and a status.
func (a *App) renderStatus(w http.ResponseWriter, p *page, status int, name string, data any) error {
	body, err := a.execute(name, view{p, takeFlash(w, p), data})
	if err != nil {
		return err
	}
	h := w.Header()
	setHeaders(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if p.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
	return nil
}

// execute renders a template.
func (a *App) execute(name string, v view) ([]byte, error) {
	t := a.pages[name]
	if t == nil {
		return nil, fmt.Errorf("there is no template %s", name)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, v); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return buf.Bytes(), nil
}

// functions are those of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"icon": icon, "logo": logo, "dict": dict, "ago": ago, "day": day, "clock": clock, "num": num, "money": money, "bytes": byteSize,
		"plural": plural, "list": func(all ...any) []any {
			return all
		}, "join": strings.Join, "dur": duration, "span": span, "browser": browserName, "cost": costText, "rules": inputRules,
		"doclink": documentLink, "size": func(s string) int64 {
			return int64(len(s))
		}, "mask": maskText, "deref": func(b *bool) bool { return b != nil && *b }, "tokens": func(in, out int64) string { return num(in + out) },
	}
}

// dict makes a map of pairs, for the arguments of parts.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d arguments", len(pairs))
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}
