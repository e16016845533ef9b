package web

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

const (
	entriesOnPage = 500
	downloadTime  = 10 * time.Minute
)

// folderView is a directory of a session's folder, and the files that the session has produced.
type folderView struct {
	Path     []tab // directories from the folder down to this one
	Entries  []folderEntry
	Cut      bool // the directory has more entries
	Produced []filestore.Download
}

// folderEntry is a file or a directory.
type folderEntry struct {
	Name, Href string
	Dir        bool
	Files      int   // in a directory and below
	Size       int64 // of the file, or of all files below
	Link       string
	Executable bool
}

// readFolder reads the directory that the query names. Paths consist of bytes of any kind.
func (a *App) readFolder(p *page, view *sessionView) error {
	id, dir := view.Session.SessionID, p.URL.Query().Get("path")
	all, err := a.Folders.List(p.Context(), p.Workspace.ID, id)
	if err != nil {
		return err
	}
	f := &view.Folder
	f.Path = []tab{{Label: "Folder", Href: "?tab=files", Current: dir == ""}}
	for i, part := range strings.Split(dir, "/") {
		if part != "" {
			at := strings.Join(strings.Split(dir, "/")[:i+1], "/")
			f.Path = append(f.Path, tab{Label: shownName(part), Href: "?" + encode("tab", "files", "path", at), Current: at == dir})
		}
	}
	f.Entries = entriesOf(all, dir, p.Home()+"/sessions/"+id.String()+"/file?")
	if f.Cut = len(f.Entries) > entriesOnPage; f.Cut {
		f.Entries = f.Entries[:entriesOnPage]
	}
	f.Produced, err = a.srv.Files.Downloads(p.Context(), p.Workspace.ID, id, nil, nil)
	return err
}

// entriesOf returns what a directory contains: directories first, each with the sum of its files.
func entriesOf(all []workdir.Entry, dir, download string) []folderEntry {
	if dir != "" {
		dir += "/"
	}
	var list []folderEntry
	at := make(map[string]int)
	for _, e := range all {
		rest, ok := strings.CutPrefix(e.Path, dir)
		if !ok {
			continue
		}
		name, below, nested := strings.Cut(rest, "/")
		if nested || e.Kind == workdir.Dir {
			i, known := at[name]
			if !known {
				i = len(list)
				at[name] = i
				list = append(list, folderEntry{Name: shownName(name), Dir: true, Href: "?" + encode("tab", "files", "path", dir+name)})
			}
			if nested && below != "" && e.Kind == workdir.File {
				list[i].Files, list[i].Size = list[i].Files+1, list[i].Size+e.Size
			}
			continue
		}
		entry := folderEntry{Name: shownName(name), Size: e.Size, Executable: e.Executable, Link: shownName(e.Target)}
		if e.Kind == workdir.File {
			entry.Href = download + encode("path", e.Path)
		}
		list = append(list, entry)
	}
	slices.SortStableFunc(list, func(a, b folderEntry) int {
		switch {
		case a.Dir == b.Dir:
			return strings.Compare(a.Name, b.Name)
		case a.Dir:
			return -1
		}
		return 1
	})
	return list
}

// shownName returns a name of any bytes as text, on one line.
func shownName(name string) string {
	return text.Escape(strings.ToValidUTF8(name, "\uFFFD"))
}

// sessionFile sends a file of a session's folder. A browser never renders it under this origin.
func (a *App) sessionFile(w http.ResponseWriter, p *page) error {
	id, ok := request.ID(p.PathValue("session"))
	if !ok {
		return fault.New(fault.SessionNotFound, "The session does not exist in this workspace.")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), downloadTime)
	defer cancel()
	f, err := a.Folders.Open(ctx, p.Workspace.ID, id, p.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", filestore.Disposition(strings.ToValidUTF8(path.Base(f.Path), "_")))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	if p.Method == http.MethodHead {
		return nil
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime))
	return f.Copy(ctx, w)
}

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
	filestore.StatusPending: {"off", "Waits for its bytes"}, filestore.StatusFetching: {"run", "Being fetched"}, filestore.StatusReady: {"ok", "Ready"},
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
