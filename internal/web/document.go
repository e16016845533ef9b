package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/web/docsite"
)

// documentView is a document, or its editor.
type documentView struct {
	Doc     wiki.Document
	Parents []folderLink
	HTML    template.HTML // of Markdown; "" shows the source
	Source  bool          // shows Markdown as it is written
	Delete  bool          // asks before the document is deleted
	Edit    bool
	New     bool
	Form    *form
	Diff    textDiff // from the stored document to the text of the form, after a conflict
}

// isMarkdown reports whether a document is rendered.
func isMarkdown(name string) bool { return strings.EqualFold(path.Ext(name), ".md") }

func (a *App) documentPage(w http.ResponseWriter, p *page) error {
	q := p.URL.Query()
	if q.Get("new") == "1" && p.Can("config:write") {
		return a.showDocument(w, p, http.StatusOK, documentView{New: true, Edit: true, Form: emptyForm("path", q.Get("folder"), "version", "0")})
	}
	d, err := a.findDocument(p)
	if err != nil {
		return err
	}
	view := documentView{Doc: d, Source: q.Get("source") == "1", Delete: q.Get("delete") == "1" && p.Can("config:write"),
		Edit: q.Get("edit") == "1" && p.Can("config:write")}
	if view.Edit {
		view.Form = emptyForm("path", d.Path, "content", d.Content, "version", strconv.Itoa(d.Version))
	} else if isMarkdown(d.Path) && !view.Source {
		if view.HTML, err = docsite.Untrusted(d.Content, func(link string) string { return linkBetween(d.Path, link) }); err != nil {
			return err
		}
	}
	return a.showDocument(w, p, http.StatusOK, view)
}

func (a *App) showDocument(w http.ResponseWriter, p *page, status int, view documentView) error {
	view.Parents = parentsOf(view.Doc.Path)
	return a.renderStatus(w, p, status, "document", view)
}

// linkBetween returns the address of a document that another one links to. A path that begins with
// a slash begins at the first folder; a wiki page may be named without its suffix.
func linkBetween(from, link string) string {
	to := strings.TrimPrefix(link, "/")
	if to == link {
		to = path.Join(path.Dir(from), link)
	}
	if path.Ext(to) == "" && strings.HasPrefix(to, "wiki/") {
		to += ".md"
	}
	return documentLink(path.Clean(to))
}

// findDocument returns the document that the address names.
func (a *App) findDocument(p *page) (wiki.Document, error) {
	d, err := a.Wiki.Get(p.Context(), p.Workspace.ID, p.URL.Query().Get("path"))
	if f := fault.From(err); f != nil && f.Code == fault.FileNotFound {
		return d, &fault.Error{Code: fault.RouteNotFound, Message: f.Message}
	}
	return d, err
}

// Link returns the address of the document, as a query.
func (v documentView) Link() string { return "?path=" + url.QueryEscape(v.Doc.Path) }

// changeDocument serves the forms of a document.
func (a *App) changeDocument(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	version, err := strconv.Atoi(f.Value("version"))
	if err != nil || version < 0 {
		return unknownForm()
	}
	switch f.Value("do") {
	case "save":
		return a.saveDocument(w, p, f, version)
	case "delete":
		name := p.URL.Query().Get("path")
		ok, err := a.Wiki.Remove(p.Context(), p.Workspace.ID, name, version)
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.PreconditionFailed, "The document has changed since you opened it, or is deleted already. Open it again.")
		}
		p.flash(w, "Document "+path.Base(name)+" deleted.")
		folder, _ := path.Split(name)
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/knowledge?folder="+url.QueryEscape(folder))
	}
	return unknownForm()
}

// saveDocument writes a document over the version that its author has read; 0 is a new one.
func (a *App) saveDocument(w http.ResponseWriter, p *page, f *form, version int) error {
	name, content := p.URL.Query().Get("path"), strings.ReplaceAll(f.Value("content"), "\r\n", "\n")
	if name == "" {
		name = strings.TrimSpace(f.Value("path"))
	}
	f.Values.Set("content", content)
	view := documentView{Edit: true, New: p.URL.Query().Get("path") == "", Form: f, Doc: wiki.Document{Path: name}}
	written, ok, err := a.Wiki.Write(p.Context(), p.Workspace.ID, name, content, version)
	if err != nil {
		if err := f.take(err, "path", "content"); err != nil {
			return err
		}
		return a.showDocument(w, p, http.StatusUnprocessableEntity, view)
	}
	if !ok {
		if err := a.explainConflict(p, f, &view); err != nil {
			return err
		}
		return a.showDocument(w, p, http.StatusUnprocessableEntity, view)
	}
	p.flash(w, fmt.Sprintf("Version %d saved. The agent reads it from now on.", written))
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/knowledge/"+documentLink(name))
}

// explainConflict shows the difference between the stored document and the text of the form, which
// then replaces the document that its author has seen.
func (a *App) explainConflict(p *page, f *form, view *documentView) error {
	stored, err := a.Wiki.Get(p.Context(), p.Workspace.ID, view.Doc.Path)
	problem := fault.From(err)
	switch {
	case problem != nil && problem.Code == fault.FileNotFound:
		f.Values.Set("version", "0")
		f.Note = "This document was deleted since you opened it. Save again to create it once more."
		return nil
	case err != nil:
		return err
	case view.New:
		f.fail("path", "There is a document with this path. Open it to change it, or choose another path.")
		return nil
	}
	f.Values.Set("version", strconv.Itoa(stored.Version))
	f.Note = fmt.Sprintf(
		"This document has changed since you opened it: it is at version %d now. The difference from it to your text is below. "+
			"Save again to replace it.", stored.Version)
	view.Doc, view.Diff = stored, diffDocuments(stored.Path, stored.Content, f.Value("content"))
	return nil
}
