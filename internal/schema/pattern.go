package schema

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// The limits of a regular expression.
const (
	maxPattern = 1000 // bytes
	maxProgram = 2000 // instructions
)

// pattern is a regular expression. Go's regular expressions run in time linear in the text, but do
// not support lookahead. Lookaheads at the beginning of a pattern, their usual place, become
// separate expressions: ^(?=a)(?!b)c is ^c, and ^a, and not ^b.
type pattern struct {
	source string
	all    []*regexp.Regexp // the last one is the rest after the lookaheads
	none   []*regexp.Regexp
	size   int // instructions
}

func (w word) compilePattern(value any, to **pattern) error {
	source, ok := value.(string)
	if !ok || len(source) > maxPattern {
		return newError(w.at, "A pattern is a string of at most %d bytes.", maxPattern)
	}
	p := &pattern{source: source}
	*to = p
	rest, ok := source, true
	for ok {
		var body string
		var wanted bool
		if body, rest, wanted, ok = cutLookahead(rest); ok {
			if err := w.addPattern(p, "^(?:"+body+")", wanted); err != nil {
				return err
			}
		}
	}
	if rest != source && hasAlternatives(rest) {
		return newError(w.at, "The pattern %.60q has alternatives after a lookahead; put them into a group.", source)
	}
	return w.addPattern(p, rest, true)
}

// addPattern compiles a part of a pattern.
func (w word) addPattern(p *pattern, source string, wanted bool) error {
	const advice = "Patterns follow RE2: no backreferences, and lookaheads only behind a leading ^."
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return newError(w.at, "The pattern %.60q cannot be compiled: %v. %s", p.source, err, advice)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return newError(w.at, "The pattern %.60q cannot be compiled: %v.", p.source, err)
	}
	if p.size += len(program.Inst); p.size > maxProgram {
		return newError(w.at, "The pattern %.60q repeats too much: it has %d instructions, at most %d are allowed.", p.source, p.size, maxProgram)
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return newError(w.at, "The pattern %.60q cannot be compiled: %v.", p.source, err)
	}
	if wanted {
		p.all = append(p.all, re)
	} else {
		p.none = append(p.none, re)
	}
	return nil
}

func (p *pattern) matches(s string) bool {
	for _, re := range p.all {
		if !re.MatchString(s) {
			return false
		}
	}
	for _, re := range p.none {
		if re.MatchString(s) {
			return false
		}
	}
	return true
}

// cutLookahead removes the first lookahead from a pattern that begins with one.
func cutLookahead(source string) (body, rest string, wanted, ok bool) {
	inner, wanted := strings.CutPrefix(source, "^(?=")
	if !wanted {
		inner, ok = strings.CutPrefix(source, "^(?!")
		if !ok {
			return "", source, false, false
		}
	}
	depth := 1
	for i, c := range bytesOutside(inner) {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return inner[:i], "^" + inner[i+1:], wanted, true
			}
		}
	}
	return "", source, false, false
}

// hasAlternatives reports whether a pattern has a | outside groups.
func hasAlternatives(source string) bool {
	depth := 0
	for _, c := range bytesOutside(source) {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// bytesOutside yields the bytes of a pattern that are outside classes and escapes.
func bytesOutside(source string) func(yield func(int, byte) bool) {
	return func(yield func(int, byte) bool) {
		class := -1 // the beginning of the class
		for i := 0; i < len(source); i++ {
			switch c := source[i]; {
			case c == '\\':
				i++
			case class >= 0:
				// A ] at the very beginning of a class belongs to it.
				if c == ']' && i > class+1 && source[class+1:i] != "^" {
					class = -1
				}
			case c == '[':
				class = i
			case !yield(i, c):
				return
			}
		}
	}
}
