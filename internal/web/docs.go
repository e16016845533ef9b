package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/web/docsite"
)

// manual is the documentation and the reference of the API.
type manual struct {
	*docsite.Library
	API *docsite.Reference
}

// openManual reads the documentation, on the first request for it.
func (a *App) openManual() (*manual, error) {
	document, err := rest.Document(a.srv.Config)
	if err != nil {
		return nil, err
	}
	m := new(manual)
	if m.API, err = docsite.NewReference(document, a.root+"/docs/api"); err != nil {
		return nil, err
	}
	m.Library, err = docsite.NewLibrary(docs.Files, a.root+"/docs", m.API.Sections()...)
	return m, err
}

// docsView is the data of the documentation's templates.
type docsView struct {
	Manual    *manual
	Title     string
	Page      *docsite.Page
	Operation *docsite.Operation
	Headings  []docsite.Heading // of the page
	Query     string
	Results   []docsite.Result
	Near      []docsLink // for a page that does not exist
	Prev      *docsLink
	Next      *docsLink
}

type docsLink struct{ Title, Path string }

const (
	htmlType     = "text/html; charset=utf-8"
	markdownType = "text/markdown; charset=utf-8"
	textType     = "text/plain; charset=utf-8"
)

// docs serves the documentation. It needs no member and no database.
func (a *App) docs(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return fault.New(fault.MethodNotAllowed, "This page does not take %s requests.", r.Method)
	}
	m, err := a.manual()
	if err != nil {
		return err
	}
	p := &page{Request: r, App: a, Section: "docs"}
	topic := strings.Trim(strings.TrimPrefix(r.URL.Path, "/docs"), "/")
	id, isOperation := strings.CutPrefix(topic, "api/")
	switch {
	case r.URL.Path == "/llms.txt":
		return writeCached(w, r, http.StatusOK, textType, []byte(m.LLMs(p.origin())))
	case r.URL.Path == "/llms-full.txt":
		return writeCached(w, r, http.StatusOK, textType, []byte(m.LLMsFull(p.origin())))
	case topic == "search":
		return a.docsSearch(w, p, m)
	case topic == "api":
		return a.renderDocs(w, p, http.StatusOK, "docs-api", docsView{Manual: m, Title: "API reference", Headings: apiHeadings(m.API)})
	case isOperation && m.API.Operation(id) != nil:
		op := m.API.Operation(id)
		return a.renderDocs(w, p, http.StatusOK, "docs-operation", docsView{Manual: m, Title: op.Summary, Operation: op})
	case strings.HasSuffix(topic, ".md"):
		for _, found := range m.All() {
			if found.File == topic {
				return writeCached(w, r, http.StatusOK, markdownType, found.Markdown)
			}
		}
	}
	if found := m.Page(topic); found != nil {
		v := docsView{Manual: m, Title: found.Title, Page: found, Headings: found.Headings}
		v.Prev, v.Next = m.neighbours(found)
		return a.renderDocs(w, p, http.StatusOK, "docs", v)
	}
	return a.renderDocs(w, p, http.StatusNotFound, "docs-missing", docsView{Manual: m, Title: "Page not found", Near: m.near(topic)})
}

func (a *App) docsSearch(w http.ResponseWriter, p *page, m *manual) error {
	v := docsView{Manual: m, Title: "Search", Query: strings.TrimSpace(p.FormValue("q"))}
	if len(v.Query) > 200 {
		v.Query = strings.ToValidUTF8(v.Query[:200], "")
	}
	if v.Results = m.Find(v.Query, 20); len(v.Results) == 0 && v.Query != "" {
		v.Near = m.near(v.Query)
	}
	return a.renderDocs(w, p, http.StatusOK, "docs-search", v)
}

// renderDocs responds with a page of the documentation, which depends on the visitor's theme alone.
func (a *App) renderDocs(w http.ResponseWriter, p *page, status int, name string, v docsView) error {
	body, err := a.execute(name, view{page: p, Data: v})
	if err != nil {
		return err
	}
	setHeaders(w.Header())
	w.Header().Set("Vary", "Cookie")
	return writeCached(w, p.Request, status, htmlType, body)
}

// writeCached responds with a body that caches may keep and must check each time.
func writeCached(w http.ResponseWriter, r *http.Request, status int, kind string, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", kind)
	if status != http.StatusOK {
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
		return nil
	}
	sum := sha256.Sum256(body)
	h.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:12])+`"`)
	h.Set("Cache-Control", "private, no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// origin is the public address without the path of the pages.
func (p *page) origin() string { return strings.TrimSuffix(p.Base(), p.App.root) }

// neighbours returns the pages before and after one, in the order of the index.
func (m *manual) neighbours(p *docsite.Page) (before, after *docsLink) {
	all := m.All()
	for i := range all {
		if all[i] != p {
			continue
		}
		if i > 0 {
			before = &docsLink{all[i-1].Label, all[i-1].Path}
		}
		if i+1 < len(all) {
			after = &docsLink{all[i+1].Label, all[i+1].Path}
		}
	}
	return before, after
}

// near returns the pages and operations whose names resemble one that does not exist.
func (m *manual) near(name string) (near []docsLink) {
	found, pages := m.Lookup(name)
	if found != nil {
		pages = append(pages, found)
	}
	for _, p := range pages {
		near = append(near, docsLink{p.Title, p.Path})
	}
	for _, op := range m.API.Nearest(name[strings.LastIndexByte(name, '/')+1:]) {
		near = append(near, docsLink{op.Summary, op.Address})
	}
	return near
}

// apiHeadings are the headings of the overview: those of its text, and the groups of operations.
func apiHeadings(api *docsite.Reference) []docsite.Heading {
	all := []docsite.Heading{{Level: 2, ID: "operations", Text: "Operations"}}
	for _, tag := range api.Tags {
		all = append(all, docsite.Heading{Level: 3, ID: "tag-" + tag.Name, Text: tag.Title()})
	}
	return append(append(all, api.Headings...), docsite.Heading{Level: 2, ID: "values-of-limits", Text: "Values of limits"})
}

// docsFunctions are those of the documentation's templates.
var docsFunctions = template.FuncMap{
	"markdown": docsite.Text, "inline": docsite.Inline, "code": docsite.Code, "lower": strings.ToLower, "hasPrefix": strings.HasPrefix,
	"language": func(mediaType string) string {
		if strings.HasSuffix(mediaType, "json") || mediaType == "text/event-stream" {
			return "json"
		}
		return ""
	},
}

// IsWithin reports whether the open page is p or one of its folder.
func (v docsView) IsWithin(p *docsite.Page) bool {
	return v.Page != nil && (v.Page == p || v.Page.Under == p)
}
