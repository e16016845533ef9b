package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/text"
)

const (
	documentsOnPage = 100
	hitsOnPage      = 20
)

// knowledgeView is a folder of the documents, or what a search has found.
type knowledgeView struct {
	Folder  string // with a slash at its end; "": the first one
	Parents []folderLink
	List    []documentRow
	Count   int // documents in the folder and below
	Size    int64
	First   string // address of the first page; "": this is it
	Older   string // address of the next page
	Query   string
	Hits    []hitRow
	Form    *form // of the upload
	Results []uploadResult
}

type folderLink struct{ Name, Path string }

// documentRow is a document, or a folder with what is below it.
type documentRow struct {
	Name    string
	Folder  string // path of a folder; "": a document
	Path    string
	Title   string
	Count   int
	Size    int64
	Version int
	Changed time.Time
}

// hitRow is a passage that a search has found.
type hitRow struct {
	wiki.Hit
	Share int // percent of the terms that are in the passage
}

func (a *App) knowledgePage(w http.ResponseWriter, p *page) error {
	return a.showKnowledge(w, p, http.StatusOK, knowledgeView{Folder: p.URL.Query().Get("folder")})
}

func (a *App) showKnowledge(w http.ResponseWriter, p *page, status int, view knowledgeView) error {
	q := p.URL.Query()
	if view.Query = strings.TrimSpace(text.Truncate(q.Get("q"), 400)); view.Query != "" {
		return a.showHits(w, p, view)
	}
	if view.Folder != "" && !strings.HasSuffix(view.Folder, "/") {
		view.Folder += "/"
	}
	view.Parents = parentsOf(view.Folder)
	if view.Form == nil {
		view.Form = emptyForm("folder", strings.TrimSuffix(view.Folder, "/"))
	}
	entries, err := a.Wiki.List(p.Context(), p.Workspace.ID, view.Folder)
	if err != nil {
		return err
	}
	view.arrange(entries, q.Get("after"))
	return a.renderStatus(w, p, status, "knowledge", view)
}

// arrange puts the folders of a folder before its documents, and chooses those after a name.
func (v *knowledgeView) arrange(entries []wiki.Entry, after string) {
	var folders, documents []documentRow
	at := make(map[string]int)
	for _, e := range entries {
		v.Count++
		v.Size += int64(e.Size)
		name, rest, below := strings.Cut(strings.TrimPrefix(e.Path, v.Folder), "/")
		if !below {
			documents = append(documents, documentRow{Name: name, Path: e.Path, Title: e.Title, Size: int64(e.Size), Version: e.Version, Changed: e.UpdatedAt})
			continue
		}
		i, known := at[name]
		if !known {
			i, at[name] = len(folders), len(folders)
			folders = append(folders, documentRow{Name: name, Folder: e.Path[:len(e.Path)-len(rest)]})
		}
		folders[i].Count++
		folders[i].Size += int64(e.Size)
		if e.UpdatedAt.After(folders[i].Changed) {
			folders[i].Changed = e.UpdatedAt
		}
	}
	here := "?folder=" + url.QueryEscape(v.Folder)
	if after != "" {
		v.First = here
	}
	for _, row := range append(folders, documents...) {
		if row.key() <= after {
			continue
		}
		if n := len(v.List); n == documentsOnPage {
			v.Older = here + "&after=" + url.QueryEscape(v.List[n-1].key())
			break
		}
		v.List = append(v.List, row)
	}
}

// key orders the rows of a folder: PostgreSQL returns paths in the order of their bytes.
func (r documentRow) key() string {
	if r.Folder != "" {
		return "1" + r.Name
	}
	return "2" + r.Name
}

// parentsOf returns the folders above a path and, for a folder, the folder itself.
func parentsOf(path string) (list []folderLink) {
	for at := 0; ; {
		i := strings.Index(path[at:], "/")
		if i < 0 {
			return list
		}
		list = append(list, folderLink{path[at : at+i], path[:at+i+1]})
		at += i + 1
	}
}

// showHits shows the passages that the agent would find, too.
func (a *App) showHits(w http.ResponseWriter, p *page, view knowledgeView) error {
	hits, err := a.Wiki.Search(p.Context(), p.Workspace.ID, view.Query, "", hitsOnPage)
	if err != nil {
		return err
	}
	for _, h := range hits {
		view.Hits = append(view.Hits, hitRow{h, int(100*h.Coverage + 0.5)})
	}
	return a.render(w, p, "knowledge", view)
}

// ScoreText is the score of a passage.
func (h hitRow) ScoreText() string { return strconv.FormatFloat(h.Score, 'f', 2, 64) }

// documentLink returns the address of a document, as a query.
func documentLink(path string) string { return "document?path=" + url.QueryEscape(path) }
