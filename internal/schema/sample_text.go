package schema

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// usual are example texts for the checked formats, and for some others.
var usual = map[string]func(i int) string{
	"date-time": func(i int) string { return "2026-01-" + twoDigits(i) + "T12:00:00Z" },
	"date":      func(i int) string { return "2026-01-" + twoDigits(i) },
	"time":      func(i int) string { return "12:00:" + twoDigits(i) + "Z" },
	"duration":  func(i int) string { return "PT" + strconv.Itoa(i+1) + "H" },
	"email":     func(i int) string { return "someone" + strconv.Itoa(i+1) + "@example.com" },
	"hostname":  func(i int) string { return "host" + strconv.Itoa(i+1) + ".example.com" },
	"uri":       func(i int) string { return "https://example.com/" + strconv.Itoa(i+1) },
	"uuid":      func(i int) string { return "00000000-0000-4000-8000-0000000000" + twoDigits(i) },
	"ipv4":      func(i int) string { return "192.0.2." + strconv.Itoa(i%250+1) },
	"ipv6":      func(i int) string { return "2001:db8::" + strconv.Itoa(i%9999+1) },
}

func twoDigits(i int) string {
	i = i%28 + 1
	return strconv.Itoa(i/10) + strconv.Itoa(i%10)
}

// sampleText makes a string: an example of its format, or one that its pattern allows, or the
// words.
func (f *filler) sampleText(nodes []*node, variant int) (any, bool) {
	least, most := atLeast(nodes, "minLength"), atMost(nodes, "maxLength")
	for _, n := range nodes {
		if example := usual[n.format]; example != nil {
			if s := example(variant); f.isValid(nodes, s) {
				return s, true
			}
		}
	}
	var patterns []*pattern
	for _, n := range nodes {
		if n.match != nil {
			patterns = append(patterns, n.match)
		}
	}
	if patterns == nil {
		return f.proseOf(least, most, variant), true
	}
	for _, p := range patterns {
		if s, ok := f.sampleMatching(p, variant, least, most); ok && f.isValid(nodes, s) {
			return s, true
		}
	}
	return f.oneAfterAnother(patterns, variant)
}

// oneAfterAnother joins texts that match each of several patterns: the pattern anchored at the
// beginning comes first, the one anchored at the end last.
func (f *filler) oneAfterAnother(patterns []*pattern, variant int) (any, bool) {
	slices.SortStableFunc(patterns, func(a, b *pattern) int { return a.turn() - b.turn() })
	var all string
	for _, p := range patterns {
		s, ok := f.sampleMatching(p, variant, 0, maxCount)
		if !ok {
			return nil, false
		}
		all += s
	}
	return all, true
}

func (p *pattern) turn() int {
	switch {
	case strings.HasPrefix(p.source, "^"):
		return 0
	case strings.HasSuffix(p.source, "$"):
		return 2
	}
	return 1
}

// proseOf returns the words in a text of least to most characters.
func (f *filler) proseOf(least, most, variant int) string {
	const enough, tooMuch = 200, maxValueSize
	start := variant % len(f.words)
	var b strings.Builder
	for i := range f.words {
		word := f.words[(start+i)%len(f.words)]
		if b.Len() > 0 && b.Len()+len(word) >= max(enough, least) {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	if variant >= len(f.words) {
		b.WriteString(" " + strconv.Itoa(variant))
	}
	for n := utf8.RuneCountInString(b.String()); n < least && n < tooMuch; n++ {
		b.WriteByte('.')
	}
	runes := []rune(b.String())
	return strings.TrimSpace(string(runes[:min(len(runes), most)]))
}

// sampleMatching makes a text that matches, if one of the simplest does.
func (f *filler) sampleMatching(p *pattern, variant, least, most int) (string, bool) {
	tree, err := syntax.Parse(p.all[len(p.all)-1].String(), syntax.Perl)
	if err != nil { // it was compiled before
		return "", false
	}
	for try := range 6 {
		for _, more := range []int{0, 1, 2, 3, 8, 16, 32, 64, least - 2, least - 1, least} {
			var b strings.Builder
			w := writer{Builder: &b, variant: variant + try, more: max(more, 0), left: 4 * maxPattern}
			w.writePattern(tree)
			s := b.String()
			if n := utf8.RuneCountInString(s); n < least && more == least { // an open end can be longer
				s += strings.Repeat("a", min(least-n, 4*maxPattern))
			}
			switch n := utf8.RuneCountInString(s); {
			case !f.run.matchPattern(p, s) || !f.run.spendSteps(len(s)):
				return "", false
			case n >= least && n <= most && p.matches(s):
				return s, true
			}
		}
	}
	return "", false
}

// writer writes a text that matches a regular expression.
type writer struct {
	*strings.Builder
	variant int
	more    int // repetitions beyond those needed
	left    int // steps
}

func (w *writer) writePattern(re *syntax.Regexp) {
	if w.left--; w.left < 0 {
		return
	}
	least, most := 1, 1
	switch re.Op {
	case syntax.OpLiteral:
		w.WriteString(string(re.Rune))
		return
	case syntax.OpCharClass:
		w.WriteRune(w.pickRune(re.Rune))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		const some = "aB3-cD5_" // contains every kind of character, for schemas of strong passwords
		w.WriteByte(some[(w.variant+w.Len())%len(some)])
		return
	case syntax.OpAlternate:
		w.writePattern(re.Sub[w.variant%len(re.Sub)])
		return
	case syntax.OpStar:
		least, most = 0, maxCount
	case syntax.OpPlus:
		most = maxCount
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		least, most = re.Min, re.Max
		if most < 0 {
			most = maxCount
		}
	}
	for i := 0; i < min(least+w.more, most) && w.left > 0; i++ {
		for _, sub := range re.Sub {
			w.writePattern(sub)
		}
	}
}

// pickRune chooses a character of a class, a plain one if it has any.
func (w *writer) pickRune(ranges []rune) rune {
	var plain []rune
	for _, r := range "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_. " {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				plain = append(plain, r)
			}
		}
	}
	switch {
	case len(plain) > 0:
		return plain[(w.variant+w.Len())%len(plain)]
	case len(ranges) > 0:
		return ranges[0]
	}
	return 'a'
}
