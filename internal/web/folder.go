package web

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

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
