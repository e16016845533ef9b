package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/filestore"
)

const filesOnPage = 50

// filesView is the page of the files of a workspace.
type filesView struct {
	List   []fileRow
	Tab    string // in, out or ""
	Tabs   []tab
	Pager  map[string]string
	TTL    time.Duration // how long a signed address can be used
	Delete *fileRow      // asks before this file is deleted
}

// fileRow is a file in the list.
type fileRow struct {
	filestore.File
	State, Word string
}

var fileWords = map[filestore.Status][2]string{
	filestore.StatusPending: {"off", "Waits for its bytes"}, filestore.StatusFetching: {"run", "Being fetched"},
	filestore.StatusReady:    {"ok", "Ready"},
	filestore.StatusRejected: {"bad", "Rejected"}, filestore.StatusExpired: {"off", "Never arrived"},
}

func fileRowOf(f filestore.File) fileRow {
	return fileRow{f, fileWords[f.Status][0], fileWords[f.Status][1]}
}

func (a *App) filesPage(w http.ResponseWriter, p *page) error {
	q := p.URL.Query()
	view := filesView{TTL: a.srv.Files.TTL()}
	if d := q.Get("direction"); d == string(filestore.In) || d == string(filestore.Out) {
		view.Tab = d
	}
	for _, t := range []option{{"", "All"}, {"in", "Sent in"}, {"out", "Produced"}} {
		view.Tabs = append(view.Tabs, tab{t.Label, "?direction=" + t.Value, t.Value == view.Tab})
	}
	list, err := a.srv.Files.List(p.Context(), p.Workspace.ID, filestore.Direction(view.Tab), filesOnPage, q.Get("cursor"))
	if err != nil {
		return err
	}
	for _, f := range list.Data {
		view.List = append(view.List, fileRowOf(f))
	}
	if id, ok := request.ID(q.Get("delete")); ok && p.Can("files:write") {
		f, err := a.srv.Files.Get(p.Context(), p.Workspace.ID, id)
		if err != nil {
			return err
		}
		view.Delete = new(fileRowOf(f))
	}
	view.Pager = pagerOf(without(q, "delete"), list.NextCursor, plural(len(list.Data), "file", "files"))
	return a.render(w, p, "files", view)
}

// changeFiles deletes a file.
func (a *App) changeFiles(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	id, err := uuid.Parse(f.Value("file"))
	if f.Value("do") != "delete" || err != nil {
		return unknownForm()
	}
	if err := a.srv.Files.Delete(p.Context(), p.Workspace.ID, id); err != nil {
		return err
	}
	p.flash(w, "File deleted. Its addresses do not work any more.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/files")
}

// openFile leads to a fresh signed address of a file.
func (a *App) openFile(w http.ResponseWriter, p *page) error {
	id, ok := request.ID(p.PathValue("file"))
	if !ok {
		return fault.New(fault.FileNotFound, "The file does not exist.")
	}
	d, err := a.srv.Files.Download(p.Context(), p.Workspace.ID, id)
	if err != nil {
		return err
	}
	u, err := url.Parse(d.DownloadURL)
	if err != nil {
		return err
	}
	return p.redirect(w, u.RequestURI())
}
