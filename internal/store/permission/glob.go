package permission

import (
	"fmt"
	"path"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

const (
	maxSegments = 64 // maximum number of segments of a path
	maxDeep     = 3  // ** in one pattern
)

// glob is a pattern of path segments: * matches letters within one segment, ** matches whole
// segments: at the end at least one, elsewhere any number.
type glob struct {
	segments []string
	hidden   bool // wildcards also cover names that change how programs run
}

// parseGlob parses a glob.
func parseGlob(s string) (glob, []fault.Violation) {
	g := glob{segments: strings.Split(s, "/")}
	deep := 0
	for _, seg := range g.segments {
		switch {
		case seg == "" || seg == "." || seg == "..":
			return g, []fault.Violation{newViolation("format", "A path is relative and clean: handbook/**, without empty, . or .. segments.")}
		case seg == "**":
			deep++
		case strings.Contains(seg, "**"):
			return g, []fault.Violation{newViolation("wildcard", "** stands for whole segments: handbook/**. Within a segment * is enough.")}
		}
	}
	switch {
	case strings.ContainsAny(s, `\?[]{}`):
		return g, []fault.Violation{newViolation("format", `The only wildcards are * and **, and a path holds none of \ ? [ ] { }.`)}
	case len(g.segments) > maxSegments || deep > maxDeep:
		return g, []fault.Violation{newViolation("max_length", fmt.Sprintf("A path pattern has at most %d segments and %d of **.",
			maxSegments, maxDeep))}
	}
	return g, nil
}

func (g glob) String() string { return strings.Join(g.segments, "/") }

// coversPath reports whether the glob matches a path.
func (g glob) coversPath(p string) bool {
	segments := strings.Split(p, "/")
	return len(segments) <= maxSegments && g.matchSegments(g.segments, segments)
}

func (g glob) matchSegments(want, have []string) bool {
	for i, seg := range want {
		if seg == "**" {
			last := i == len(want)-1
			for n := i; n <= len(have); n++ {
				if n > i && !g.wildMatches(seg, have[n-1]) {
					return false
				}
				if last && n == len(have) {
					return n > i
				}
				if !last && g.matchSegments(want[i+1:], have[n:]) {
					return true
				}
			}
			return false
		}
		if i >= len(have) {
			return false
		}
		if !g.wildMatches(seg, have[i]) {
			return false
		}
		if ok, err := path.Match(seg, have[i]); err != nil || !ok {
			return false
		}
	}
	return len(have) == len(want)
}

// wildMatches reports whether the wildcards of a pattern's segment, if any, may match a path's
// segment: they do not match the dot at the beginning of a name, or a part of HEAD.
func (g glob) wildMatches(pattern, segment string) bool {
	dot := strings.HasPrefix(pattern, "*") && strings.HasPrefix(segment, ".")
	head := strings.Contains(pattern, "*") && isHead(segment)
	return g.hidden || !dot && !head
}

// parseNames parses a glob that does not match everything.
func parseNames(s string) (glob, []fault.Violation) {
	g, vs := parseGlob(s)
	if len(vs) == 0 && strings.Trim(s, "*/") == "" {
		vs = append(vs,
			newViolation("wildcard", "A pattern names something: handbook/** or *.csv. To allow everything, an administrator sets the tool's rule."))
	}
	return g, vs
}
