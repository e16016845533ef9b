package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// repository is where files outside of docs are read.
const repository = "https://github.com/parley-server/parley/blob/main/"

// converter renders Markdown. Raw HTML is left out, and nothing has an inline style.
var converter = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&nodeRenderer{html.NewConfig()}, 100))),
)

// renderPage parses and renders a page.
func (l *Library) renderPage(file string, source []byte) (*Page, error) {
	topic := topicOf(file)
	p := &Page{File: file, Topic: topic, Path: l.address(topic), Markdown: l.rewriteMarkdown(file, source)}
	doc := converter.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(make(anchors)))))
	l.rewriteLinks(file, doc)
	for n := doc.FirstChild(); n != nil; {
		next := n.NextSibling()
		if h, ok := n.(*ast.Heading); ok {
			if found := headingOf(h, source); p.Title == "" {
				p.Title = found.Text
				doc.RemoveChild(doc, n)
			} else {
				p.Headings = append(p.Headings, found)
			}
		}
		n = next
	}
	if p.Title == "" {
		return p, fmt.Errorf("%s has no title", file)
	}
	var out bytes.Buffer
	if err := converter.Renderer().Render(&out, source, doc); err != nil {
		return p, fmt.Errorf("render %s: %w", file, err)
	}
	p.HTML = template.HTML(out.String()) // our own pages, without raw HTML
	return p, nil
}

// renderText renders a text of several paragraphs, with its headings.
func renderText(description string) (template.HTML, []Heading, error) {
	source := []byte(description)
	doc := converter.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(make(anchors)))))
	var headings []Heading
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			headings = append(headings, headingOf(h, source))
		}
	}
	var out bytes.Buffer
	if err := converter.Renderer().Render(&out, source, doc); err != nil {
		return "", nil, fmt.Errorf("render a description: %w", err)
	}
	return template.HTML(out.String()), headings, nil // our own document, without raw HTML
}

// Text renders a description of the OpenAPI document.
func Text(source string) (template.HTML, error) {
	out, _, err := renderText(source)
	return out, err
}

// Inline renders a description of one paragraph without the paragraph.
func Inline(source string) (template.HTML, error) {
	out, err := Text(source)
	text := strings.TrimSpace(string(out))
	if inner, ok := strings.CutPrefix(text, "<p>"); ok && strings.Count(text, "<p>") == 1 {
		text = strings.TrimSuffix(inner, "</p>")
	}
	return template.HTML(text), err
}

func headingOf(h *ast.Heading, source []byte) Heading {
	id, _ := h.AttributeString("id")
	found := Heading{Level: h.Level, ID: fmt.Sprintf("%s", id), Text: nodeText(h, source)}
	if h.Lines().Len() > 0 {
		found.line = 1 + bytes.Count(source[:h.Lines().At(0).Start], []byte("\n"))
	}
	return found
}

// nodeText returns the text of a node without markup.
func nodeText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Segment.Value(source))
			}
		case *ast.String:
			if entering {
				b.Write(t.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// rewriteLinks makes the links of a page addresses of this site.
func (l *Library) rewriteLinks(file string, doc ast.Node) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			link.Destination = []byte(l.linkTarget(file, string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

var hasScheme = regexp.MustCompile(`^[a-z]+:`)

// linkTarget returns the address of a link in a page: of this site for pages, of the repository for
// other files.
func (l *Library) linkTarget(file, link string) string {
	target, anchor, anchored := strings.Cut(link, "#")
	if hasScheme.MatchString(link) || target == "" || strings.HasPrefix(target, "/") {
		return link
	}
	if target = path.Join(path.Dir(file), target); strings.HasPrefix(target, "../") {
		target = repository + strings.TrimPrefix(target, "../")
	} else {
		target = l.address(topicOf(target))
	}
	if anchored {
		target += "#" + anchor
	}
	return target
}

var inlineLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// rewriteMarkdown makes the links to files outside of docs addresses of the repository. The others
// work unchanged below /docs.
func (l *Library) rewriteMarkdown(file string, source []byte) []byte {
	return inlineLink.ReplaceAllFunc(source, func(link []byte) []byte {
		if to := l.linkTarget(file, string(link[2:len(link)-1])); strings.HasPrefix(to, repository) {
			return []byte("](" + to + ")")
		}
		return link
	})
}

// anchors makes the ids of headings as GitHub does, so that a link works in both places.
type anchors map[string]bool

// Generate implements parser.IDs.
func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, string(value))
	id := base
	for n := 1; a[id]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	a[id] = true
	return []byte(id)
}

// Put implements parser.IDs.
func (a anchors) Put(value []byte) { a[string(value)] = true }

// nodeRenderer renders headings with a link to themselves, and blocks of code and tables so that
// they scroll by themselves.
type nodeRenderer struct{ html.Config }

// RegisterFuncs implements renderer.NodeRenderer.
func (r *nodeRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, r.heading)
	reg.Register(ast.KindFencedCodeBlock, r.code)
	reg.Register(ast.KindCodeBlock, r.code)
	reg.Register(east.KindTable, r.table)
}

func (r *nodeRenderer) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	h := headingOf(node.(*ast.Heading), source)
	if entering {
		fmt.Fprintf(w, "<h%d id=%q>", h.Level, h.ID)
	} else {
		fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to %s">#</a></h%d>`+"\n", h.ID, template.HTMLEscapeString(h.Text), h.Level)
	}
	return ast.WalkContinue, nil
}

func (r *nodeRenderer) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fenced, ok := node.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(source))
	}
	var code strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		code.Write(line.Value(source))
	}
	fmt.Fprint(w, Code(language, code.String()))
	return ast.WalkSkipChildren, nil
}

// Code renders a block of code.
func Code(language, code string) template.HTML {
	label := "Code"
	if language != "" {
		label = "Code, " + language
	}
	return template.HTML(
		fmt.Sprintf(
			"<div class=\"codeblock\"><pre tabindex=\"0\" role=\"group\" aria-label=\"%s\" data-lang=\"%s\"><code>%s</code></pre></div>\n",
			template.HTMLEscapeString(label), template.HTMLEscapeString(language), colored(language, strings.TrimRight(code, "\n"))))
}

func (r *nodeRenderer) table(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		label := "Table"
		for n := node.PreviousSibling(); n != nil; n = n.PreviousSibling() {
			if h, ok := n.(*ast.Heading); ok {
				label = nodeText(h, source)
				break
			}
		}
		fmt.Fprintf(w, "<div class=\"frame\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table>\n",
			template.HTMLEscapeString("Table: "+label))
	} else {
		fmt.Fprint(w, "</table></div>\n")
	}
	return ast.WalkContinue, nil
}
