package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/search"
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
	list, err := a.Wiki.FolderPage(p.Context(), p.Workspace.ID, view.Folder, entryAfter(q.Get("after")), documentsOnPage+1)
	if err != nil {
		return err
	}
	view.show(list, q.Get("after"))
	return a.renderStatus(w, p, status, "knowledge", view)
}

// show adds a page of the folder after an entry. It has one entry more if another page follows.
func (v *knowledgeView) show(list wiki.Folder, after string) {
	v.Count, v.Size = list.Documents, list.Size
	here := "?folder=" + url.QueryEscape(v.Folder)
	if after != "" {
		v.First = here
	}
	if entries := list.Entries; len(entries) > documentsOnPage {
		list.Entries = entries[:documentsOnPage]
		v.Older = here + "&after=" + url.QueryEscape(afterEntry(entries[documentsOnPage-1]))
	}
	for _, e := range list.Entries {
		row := documentRow{Name: e.Name, Title: e.Title, Count: e.Documents, Size: e.Size, Version: e.Version, Changed: e.UpdatedAt}
		if e.Document {
			row.Path = v.Folder + e.Name
		} else {
			row.Folder = v.Folder + e.Name + "/"
		}
		v.List = append(v.List, row)
	}
}

// afterEntry returns the parameter for the page after an entry: 1 and the name of a folder, or 2 and
// the name of a document.
func afterEntry(e wiki.FolderEntry) string {
	if e.Document {
		return "2" + e.Name
	}
	return "1" + e.Name
}

// entryAfter is the reverse of afterEntry. The zero value is before the first entry.
func entryAfter(s string) wiki.FolderEntry {
	if s == "" {
		return wiki.FolderEntry{}
	}
	return wiki.FolderEntry{Document: s[0] == '2', Name: s[1:]}
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

// FoundBy describes the ranks that have the passage.
func (h hitRow) FoundBy() string {
	words, near := strconv.Itoa(h.Share)+" % of the terms", "similarity "+strconv.FormatFloat(h.Similarity, 'f', 2, 64)
	switch h.Source {
	case search.ByVector:
		return "vectors: " + near
	case search.ByBoth:
		return "full text and vectors: " + words + ", " + near
	}
	return "full text: " + words
}

// ScoreText is the score of a passage.
func (h hitRow) ScoreText() string { return strconv.FormatFloat(h.Score, 'f', 2, 64) }

// documentLink returns the address of a document, as a query.
func documentLink(path string) string { return "document?path=" + url.QueryEscape(path) }
