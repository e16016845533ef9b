package permission

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
)

const (
	maxSegments = 64 // of a path
	maxDeep     = 3  // ** in one pattern
)

// glob is a pattern of path segments: * stands for letters within one, ** for whole
// segments: at the end at least one, elsewhere any number.
type glob struct {
	segments []string
	hidden   bool // wildcards cover names that begin with a dot
}

// parseGlob reads a glob.
func parseGlob(s string) (glob, []fault.Violation) {
	g := glob{segments: strings.Split(s, "/")}
	deep := 0
	for _, seg := range g.segments {
		switch {
		case seg == "" || seg == "." || seg == "..":
			return g, []fault.Violation{wrong("format", "A path is relative and clean: handbook/**, without empty, . or .. segments.")}
		case seg == "**":
			deep++
		case strings.Contains(seg, "**"):
			return g, []fault.Violation{wrong("wildcard", "** stands for whole segments: handbook/**. Within a segment * is enough.")}
		}
	}
	switch {
	case strings.ContainsAny(s, `\?[]{}`):
		return g, []fault.Violation{wrong("format", `The only wildcards are * and **, and a path holds none of \ ? [ ] { }.`)}
	case len(g.segments) > maxSegments || deep > maxDeep:
		return g, []fault.Violation{wrong("max_length", fmt.Sprintf("A path pattern has at most %d segments and %d of **.", maxSegments, maxDeep))}
	}
	return g, nil
}

func (g glob) String() string { return strings.Join(g.segments, "/") }

// covers reports whether the glob stands for a path.
func (g glob) covers(p string) bool {
	segments := strings.Split(p, "/")
	return len(segments) <= maxSegments && g.match(g.segments, segments)
}

func (g glob) match(want, have []string) bool {
	for i, seg := range want {
		if seg == "**" {
			last := i == len(want)-1
			for n := i; n <= len(have); n++ {
				if n > i && !g.wild(have[n-1]) {
					return false
				}
				if last && n == len(have) {
					return n > i
				}
				if !last && g.match(want[i+1:], have[n:]) {
					return true
				}
			}
			return false
		}
		if i >= len(have) {
			return false
		}
		if strings.HasPrefix(seg, "*") && !g.wild(have[i]) {
			return false
		}
		if ok, err := path.Match(seg, have[i]); err != nil || !ok {
			return false
		}
	}
	return len(have) == len(want)
}

// wild reports whether a wildcard may stand for a segment, or for its beginning.
func (g glob) wild(segment string) bool { return g.hidden || !strings.HasPrefix(segment, ".") }

// file is a pattern of paths that a tool writes.
type file struct {
	glob
	read func(input json.RawMessage) (string, bool)
}

func parsePage(argument string) (matcher, []fault.Violation) {
	g, vs := parseNames(argument)
	if len(vs) == 0 && pageName(argument) != argument {
		v := wrong("format", "A wiki page is named without wiki/ and .md.")
		v.Suggestion = "wiki_write(" + pageName(argument) + ")"
		vs = append(vs, v)
	}
	return file{g, readPage}, vs
}

func parseFile(argument string) (matcher, []fault.Violation) {
	g, vs := parseNames(argument)
	return file{g, readFile}, vs
}

// parseNames reads a glob that does not stand for everything.
func parseNames(s string) (glob, []fault.Violation) {
	g, vs := parseGlob(s)
	if len(vs) == 0 && strings.Trim(s, "*/") == "" {
		vs = append(vs, wrong("wildcard", "A pattern names something: handbook/** or *.csv. To allow everything, an administrator sets the tool's rule."))
	}
	return g, vs
}

func (f file) matches(input json.RawMessage) bool {
	p, ok := f.read(input)
	return ok && f.covers(p)
}

// readPage is the page that a call of wiki_write writes.
func readPage(input json.RawMessage) (string, bool) {
	m, ok := members(input, "page", "content", "expected_version")
	if !ok {
		return "", false
	}
	page, ok := text(m["page"])
	page = pageName(page)
	return page, ok && local(page)
}

// pageName is the page that a name means: wiki_write accepts the path of a page's
// document too.
func pageName(page string) string {
	return strings.TrimSuffix(strings.TrimPrefix(page, "wiki/"), ".md")
}

// readFile is the file that a call of write writes.
func readFile(input json.RawMessage) (string, bool) {
	m, ok := members(input, "path", "content")
	if !ok {
		return "", false
	}
	p, ok := text(m["path"])
	return p, ok && local(p)
}

// local reports whether a path is clean and stays below where it starts.
func local(p string) bool {
	return p != "" && p != "." && p != ".." && len(p) <= 4096 && path.Clean(p) == p && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "../") &&
		utf8.ValidString(p) && !strings.ContainsFunc(p, func(r rune) bool { return r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) })
}

// hiddenPath reports whether a segment of a path begins with a dot: what lies there
// (.git, .npmrc) can change what a harmless command does.
func hiddenPath(p string) bool { return strings.HasPrefix(p, ".") || strings.Contains(p, "/.") }

// suggestPage and suggestFile propose the folder, and else the name itself.
func suggestPage(input json.RawMessage) matcher { return suggestPath(input, readPage, parsePage) }
func suggestFile(input json.RawMessage) matcher { return suggestPath(input, readFile, parseFile) }

func suggestPath(input json.RawMessage, read func(json.RawMessage) (string, bool), parse func(string) (matcher, []fault.Violation)) matcher {
	p, ok := read(input)
	if !ok {
		return nil
	}
	proposals := []string{p}
	if folder := path.Dir(p); folder != "." && !hiddenPath(p) {
		proposals = []string{folder + "/**", p}
	}
	for _, proposal := range proposals {
		if m, vs := parse(proposal); len(vs) == 0 && !strings.Contains(p, "*") && m.matches(input) {
			return m
		}
	}
	return nil
}
