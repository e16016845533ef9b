package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Untrusted renders Markdown that users, agents and other programs write. Raw HTML is shown as text,
// images become links, headings have no ids and begin at the third level, and links lead to web and
// mail addresses only. resolve returns the address of a relative link, "" for none; it may be nil.
func Untrusted(source string, resolve func(link string) string) (template.HTML, error) {
	if resolve == nil {
		resolve = func(string) string { return "" }
	}
	m := goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&untrustedRenderer{resolve}, 100))),
	)
	var out bytes.Buffer
	in := []byte(source)
	if err := m.Renderer().Render(&out, in, m.Parser().Parse(text.NewReader(in))); err != nil {
		return "", fmt.Errorf("render a text: %w", err)
	}
	return template.HTML(out.String()), nil // every node that holds markup of the text is rendered here
}

// untrustedRenderer renders the nodes whose usual form depends on the author.
type untrustedRenderer struct{ resolve func(string) string }

// RegisterFuncs implements renderer.NodeRenderer.
func (r *untrustedRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, r.heading)
	reg.Register(ast.KindFencedCodeBlock, r.code)
	reg.Register(ast.KindCodeBlock, r.code)
	reg.Register(ast.KindHTMLBlock, r.html)
	reg.Register(ast.KindRawHTML, r.html)
	reg.Register(ast.KindLink, r.link)
	reg.Register(ast.KindAutoLink, r.autoLink)
	reg.Register(ast.KindImage, r.image)
	reg.Register(east.KindTable, r.table)
}

func (r *untrustedRenderer) heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "h4"
	if node.(*ast.Heading).Level < 3 {
		tag = "h3"
	}
	if entering {
		fmt.Fprintf(w, "<%s>", tag)
	} else {
		fmt.Fprintf(w, "</%s>\n", tag)
	}
	return ast.WalkContinue, nil
}

func (r *untrustedRenderer) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		fmt.Fprintf(w, "<pre class=\"code\" tabindex=\"0\" role=\"group\" aria-label=\"Code\">%s</pre>\n",
			template.HTMLEscapeString(linesOf(node, source)))
	}
	return ast.WalkSkipChildren, nil
}

// html shows the HTML of a text as it is written.
func (r *untrustedRenderer) html(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	if raw, ok := node.(*ast.RawHTML); ok {
		for i := range raw.Segments.Len() {
			segment := raw.Segments.At(i)
			fmt.Fprint(w, template.HTMLEscapeString(string(segment.Value(source))))
		}
		return ast.WalkSkipChildren, nil
	}
	written := linesOf(node, source)
	if block := node.(*ast.HTMLBlock); block.HasClosure() {
		written += string(block.ClosureLine.Value(source))
	}
	fmt.Fprintf(w, "<p>%s</p>\n", template.HTMLEscapeString(strings.TrimSpace(written)))
	return ast.WalkSkipChildren, nil
}

func linesOf(node ast.Node, source []byte) string {
	var b strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		b.Write(line.Value(source))
	}
	return b.String()
}

func (r *untrustedRenderer) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	switch href := r.target(string(node.(*ast.Link).Destination)); {
	case href == "" && entering:
		fmt.Fprint(w, "<span>")
	case href == "":
		fmt.Fprint(w, "</span>")
	case entering:
		fmt.Fprint(w, openLink(href))
	default:
		fmt.Fprint(w, "</a>")
	}
	return ast.WalkContinue, nil
}

func (r *untrustedRenderer) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	href, label := string(n.URL(source)), template.HTMLEscapeString(string(n.Label(source)))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(href), "mailto:") {
		href = "mailto:" + href
	}
	if href = outside(href); href != "" {
		label = openLink(href) + label + "</a>"
	}
	fmt.Fprint(w, label)
	return ast.WalkSkipChildren, nil
}

func (r *untrustedRenderer) image(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.Image)
	label := nodeText(n, source)
	if label == "" {
		label = string(n.Destination)
	}
	label = "image: " + template.HTMLEscapeString(label)
	if href := r.target(string(n.Destination)); href != "" {
		label = openLink(href) + label + "</a>"
	}
	fmt.Fprint(w, label)
	return ast.WalkSkipChildren, nil
}

func (r *untrustedRenderer) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		fmt.Fprint(w, "<div class=\"frame\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n")
	} else {
		fmt.Fprint(w, "</table></div>\n")
	}
	return ast.WalkContinue, nil
}

func openLink(href string) string {
	return `<a href="` + template.HTMLEscapeString(href) + `" rel="noopener noreferrer nofollow">`
}

// target returns the address of a link, "" for none.
func (r *untrustedRenderer) target(link string) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return ""
	case u.Scheme != "":
		return outside(link)
	case u.Host != "" || u.Path == "": // an address without its scheme, or a heading of the same text
		return ""
	}
	return r.resolve(u.Path)
}

// outside returns a web or mail address, else "".
func outside(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	return u.String()
}
