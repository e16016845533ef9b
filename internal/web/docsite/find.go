package docsite

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/search"
)

// internalsWeight is how much a hit in a page for contributors counts, titleWeight one in a page
// whose title contains the query as it is.
const (
	internalsWeight = 0.5
	titleWeight     = 3
)

// sections returns the passages to search, with the address of their heading as Doc.
func (l *Library) sections() (all []search.Section) {
	for _, p := range l.All()[1:] { // the index would be found by every query
		for _, s := range search.Split(p.Path, string(p.Markdown)) {
			if at := p.headingAt(s.Line); at != nil {
				s.Doc += "#" + at.ID
				s.Heading = at.Text
			}
			all = append(all, s)
		}
	}
	return all
}

// headingAt returns the nearest heading at or above a line; nil: the page's title.
func (p *Page) headingAt(line int) (above *Heading) {
	for i := range p.Headings {
		if p.Headings[i].line <= line {
			above = &p.Headings[i]
		}
	}
	return above
}

// Result is a found passage.
type Result struct {
	Path    string // with the anchor of the heading
	Title   string // of the page
	Heading string // of the passage, "" at the beginning of a page
	Snippet []Piece
}

// Piece is a part of a snippet.
type Piece = search.Piece

// Find returns the best passages, at most one for each heading.
func (l *Library) Find(query string, limit int) (results []Result) {
	hits := l.index.Find(query, 8*limit)
	for i := range hits {
		if strings.HasPrefix(hits[i].Doc, l.base+"/internals/") {
			hits[i].Score *= internalsWeight
		}
		if strings.Contains(strings.ToLower(hits[i].Title), strings.ToLower(strings.TrimSpace(query))) {
			hits[i].Score *= titleWeight
		}
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int { return cmp.Compare(b.Score, a.Score) })
	seen := make(map[string]bool)
	for _, h := range hits {
		if len(results) == limit {
			break
		}
		if seen[h.Doc] {
			continue
		}
		seen[h.Doc] = true
		r := Result{Path: h.Doc, Title: h.Title, Heading: h.Heading, Snippet: snippet(h.Text, query)}
		if r.Heading == r.Title {
			r.Heading = ""
		}
		results = append(results, r)
	}
	return results
}

const snippetBytes = 220

var (
	markup     = regexp.MustCompile("(?m)^```.*$|[*`|]|^#+ |^\\s*[-*] |\\|?-{3,}[-|: ]*")
	markupLink = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	spaces     = regexp.MustCompile(`\s+`)
	words      = regexp.MustCompile(`[\p{L}\p{N}_]+|[^\p{L}\p{N}_]+`)
	sentence   = regexp.MustCompile(`^(.+?[.:])(\s|$)`)
)

// plainText removes the markup of Markdown.
func plainText(source string) string {
	source = markup.ReplaceAllString(markupLink.ReplaceAllString(source, "$1"), " ")
	return strings.TrimSpace(spaces.ReplaceAllString(source, " "))
}

// snippet returns the part of a passage where the words of the query begin, with the words marked.
func snippet(source, query string) (pieces []Piece) {
	wanted := make(map[string]bool)
	for _, term := range search.Terms(query) {
		wanted[term] = true
	}
	isMatch := func(word string) bool {
		for _, term := range search.Terms(word) {
			if wanted[term] {
				return true
			}
		}
		return false
	}
	all := words.FindAllString(plainText(source), -1)
	start := 0
	for i, word := range all {
		if isMatch(word) {
			start = max(0, i-12)
			break
		}
	}
	size := 0
	if start > 0 {
		pieces = append(pieces, Piece{Text: "… "})
	}
	for i, word := range all[min(start, len(all)):] {
		if size += len(word); size > snippetBytes {
			return append(pieces, Piece{Text: " …"})
		}
		if i == 0 {
			word = strings.TrimLeft(word, " ,.;:)")
		}
		if piece := (Piece{Text: word, Match: isMatch(word)}); len(pieces) > 0 && !piece.Match && !pieces[len(pieces)-1].Match {
			pieces[len(pieces)-1].Text += word
		} else {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// firstSentence returns the first sentence of a page's text.
func firstSentence(source []byte) string {
	for block := range strings.SplitSeq(string(source), "\n\n") {
		if block = strings.TrimSpace(block); block == "" || strings.HasPrefix(block, "#") || strings.HasPrefix(block, "<!--") ||
			strings.HasPrefix(block, "|") {
			continue
		}
		text := plainText(block)
		if m := sentence.FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		return strings.TrimRight(text, ".:")
	}
	return ""
}
