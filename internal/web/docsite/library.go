// Package docsite serves the documentation: the embedded pages as HTML and as Markdown, their
// search, llms.txt, and the API reference, which it renders from the served OpenAPI document.
//
// It promises: every page is public and needs no database; a page's ETag changes only with its
// content; every link between pages leads to a page and a heading that exist.
package docsite

import (
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/search"
)

// indexFile is the page that lists the others and puts them in order.
const indexFile = "README.md"

// Page is one page of the documentation.
type Page struct {
	File     string // its path in docs, such as guides/files.md
	Topic    string // its name, such as guides/files; "" for the index
	Path     string // its address, such as /docs/guides/files
	Title    string
	Label    string // its name in the index, shorter than the title
	Summary  string // one line on the content
	Group    string // the group in the index, such as Guides
	Markdown []byte
	HTML     template.HTML // without the first heading
	Headings []Heading
	// Under is the page of the folder that the page belongs to, nil for a page of the index.
	Under *Page
}

// Heading is a heading below a page's title.
type Heading struct {
	Level int
	ID    string
	Text  string
	line  int
}

// Group is a part of the index.
type Group struct {
	Title string
	Pages []*Page
}

// Library holds the pages. It is immutable and safe for concurrent use.
type Library struct {
	Index  *Page
	Groups []Group
	base   string           // address of the index, such as /docs
	pages  map[string]*Page // by topic
	index  *search.Index
}

// NewLibrary renders the pages of files, whose index gets the address base. The search also finds
// the passages of others, which have an address as Doc.
func NewLibrary(files fs.FS, base string, others ...search.Section) (*Library, error) {
	l := &Library{base: base, pages: make(map[string]*Page)}
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".md" {
			return err
		}
		source, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		p, err := l.renderPage(file, source)
		l.pages[p.Topic] = p
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the documentation: %w", err)
	}
	if l.Index = l.pages[""]; l.Index == nil {
		return nil, fmt.Errorf("read the documentation: it has no %s", indexFile)
	}
	l.arrange()
	l.index = search.New(append(l.sections(), others...))
	return l, nil
}

var (
	indexGroup = regexp.MustCompile(`^## (.+)$`)
	indexRow   = regexp.MustCompile(`^\| \[([^\]]+)\]\(([^)#]+)\) \| (.+) \|$`)
)

// arrange puts the pages into the groups of the index. A page that the index does not list belongs
// to the page of its folder.
func (l *Library) arrange() {
	for line := range strings.Lines(string(l.Index.Markdown)) {
		line = strings.TrimSpace(line)
		if m := indexGroup.FindStringSubmatch(line); m != nil {
			l.Groups = append(l.Groups, Group{Title: m[1]})
		} else if m := indexRow.FindStringSubmatch(line); m != nil && len(l.Groups) > 0 {
			if p := l.pages[topicOf(m[2])]; p != nil {
				group := &l.Groups[len(l.Groups)-1]
				p.Label, p.Summary, p.Group = plainText(m[1]), plainText(m[3]), group.Title
				group.Pages = append(group.Pages, p)
			}
		}
	}
	for _, p := range l.All() {
		if p.Group == "" && p != l.Index {
			if p.Under = l.pages[path.Dir(p.Topic)]; p.Under != nil {
				p.Group = p.Under.Group
			}
		}
		p.Label = cmp.Or(p.Label, p.Title)
		if p.Summary == "" {
			p.Summary = firstSentence(p.Markdown)
		}
	}
}

// All returns the pages in the order of the index, each before those of its folder.
func (l *Library) All() []*Page {
	all := []*Page{l.Index}
	for _, g := range l.Groups {
		for _, p := range g.Pages {
			all = append(append(all, p), l.Below(p)...)
		}
	}
	for _, p := range l.sorted() { // the pages that the index has forgotten
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// Below returns the pages of the folder of p that the index does not list.
func (l *Library) Below(p *Page) (below []*Page) {
	for _, other := range l.sorted() {
		if path.Base(p.File) == indexFile && p != l.Index && other != p && path.Dir(other.File) == path.Dir(p.File) {
			below = append(below, other)
		}
	}
	return below
}

func (l *Library) sorted() []*Page {
	pages := make([]*Page, 0, len(l.pages))
	for _, p := range l.pages {
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b *Page) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), cmp.Compare(a.Path, b.Path))
	})
	return pages
}

// Page returns the page with exactly this topic, or nil.
func (l *Library) Page(topic string) *Page { return l.pages[topic] }

// Lookup returns the page that a name means: its topic, or only the last part of it. It returns nil
// and the most similar pages if there is none.
func (l *Library) Lookup(name string) (*Page, []*Page) {
	name = strings.TrimSuffix(strings.Trim(strings.ToLower(name), "/"), ".md")
	if p := l.pages[name]; p != nil {
		return p, nil
	}
	byName := make(map[string]*Page)
	var names []string
	for _, p := range l.All()[1:] {
		last := path.Base(p.Topic)
		if last == name {
			return p, nil
		}
		byName[p.Topic], byName[last] = p, p
		names = append(names, p.Topic, last)
	}
	var near []*Page
	for _, found := range append(search.Nearest(name, names, 6), search.Nearest(path.Base(name), names, 6)...) {
		if p := byName[found]; !slices.Contains(near, p) && len(near) < 3 {
			near = append(near, p)
		}
	}
	return nil, near
}

// MarkdownPath returns the address of the page as Markdown.
func (l *Library) MarkdownPath(p *Page) string { return l.base + "/" + p.File }

// topicOf returns the topic of a file of docs: that of guides/files.md is guides/files, and a
// README is the page of its folder.
func topicOf(file string) string {
	topic := strings.TrimSuffix(file, ".md")
	if topic == "README" {
		return ""
	}
	return strings.TrimSuffix(topic, "/README")
}

// address returns the address of a topic.
func (l *Library) address(topic string) string { return strings.TrimSuffix(l.base+"/"+topic, "/") }
