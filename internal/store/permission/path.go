package permission

import (
	"encoding/json"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// file is a pattern for the paths that a tool writes.
type file struct {
	glob
	read func(input json.RawMessage) (string, bool)
}

func parsePage(argument string) (matcher, []fault.Violation) {
	g, vs := parseNames(argument)
	if plain := pageName(argument); len(vs) == 0 && plain != argument {
		v := newViolation("format", "A wiki page is named without wiki/ and .md.")
		if _, vs := parseNames(plain); len(vs) == 0 {
			v.Suggestion = "wiki_write(" + plain + ")"
		}
		vs = append(vs, v)
	}
	return file{g, readPage}, vs
}

func parseFile(argument string) (matcher, []fault.Violation) {
	g, vs := parseNames(argument)
	return file{g, readFile}, vs
}

func (f file) matches(input json.RawMessage) bool {
	p, ok := f.read(input)
	return ok && f.coversPath(p)
}

// readPage returns the page that a call of wiki_write writes.
func readPage(input json.RawMessage) (string, bool) {
	m, ok := decodeMembers(input, "page", "content", "expected_version")
	if !ok {
		return "", false
	}
	page, ok := stringOf(m["page"])
	page = pageName(page)
	return page, ok && isLocal(page)
}

// pageName returns the page for a name: wiki_write also accepts the path of a page's document.
func pageName(page string) string {
	return strings.TrimSuffix(strings.TrimPrefix(page, "wiki/"), ".md")
}

// readFile returns the file that a call of write writes.
func readFile(input json.RawMessage) (string, bool) {
	m, ok := decodeMembers(input, "path", "content")
	if !ok {
		return "", false
	}
	p, ok := stringOf(m["path"])
	return p, ok && isLocal(p)
}

// isLocal reports whether a path is clean and stays below its root.
func isLocal(p string) bool {
	return p != "" && p != "." && p != ".." && len(p) <= 4096 && path.Clean(p) == p && !strings.HasPrefix(p, "/") &&
		!strings.HasPrefix(p, "../") &&
		utf8.ValidString(p) && !strings.ContainsFunc(p, func(r rune) bool { return r == '\\' || r == utf8.RuneError || text.IsInvisible(r) })
}

// obeyedPath reports whether a path can change the effect of a harmless command: a segment begins
// with a dot (.git, .npmrc) or is HEAD.
func obeyedPath(p string) bool {
	for segment := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(segment, ".") || isHead(segment) {
			return true
		}
	}
	return false
}

// isHead reports whether a name is HEAD to a file system that ignores case: git treats a folder
// that contains one as a repository and runs commands from its config.
func isHead(segment string) bool { return strings.EqualFold(segment, "HEAD") }

// suggestPage and suggestFile propose the folder, or else the name itself.
func suggestPage(input json.RawMessage) matcher { return suggestPath(input, readPage, parsePage) }
func suggestFile(input json.RawMessage) matcher { return suggestPath(input, readFile, parseFile) }

func suggestPath(input json.RawMessage, read func(json.RawMessage) (string, bool), parse func(string) (matcher,
	[]fault.Violation)) matcher {
	p, ok := read(input)
	if !ok {
		return nil
	}
	proposals := []string{p}
	if folder := path.Dir(p); folder != "." && !obeyedPath(p) {
		proposals = []string{folder + "/**", p}
	}
	for _, proposal := range proposals {
		if m, vs := parse(proposal); len(vs) == 0 && !strings.Contains(p, "*") && m.matches(input) {
			return m
		}
	}
	return nil
}
