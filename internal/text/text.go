// Package text decides which characters can be seen, writes out the others, and shortens texts.
// Every view of what an agent wants to do uses it, so no view hides what another one shows.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are characters that are drawn as nothing although Unicode counts them as letters, marks
// or symbols: the blank Braille pattern, a null note head, a filler of Khitan, and the blanks of
// Egyptian hieroglyphs.
const blanks = "\u2800\U0001d159\U00016fe4\U00013441\U00013442"

// Invisible reports whether a character leaves no mark, or the mark of a blank other than the
// space: controls, direction marks, characters without width, fillers, variation selectors, and
// characters that no font has.
func Invisible(r rune) bool {
	return !unicode.IsPrint(r) || strings.ContainsRune(blanks, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Steers reports whether a character is a control or a direction mark: one that changes how a
// terminal shows its neighbours.
func Steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Escape returns s on one line with every invisible character written as JSON would: \u200b.
func Escape(s string) string { return EscapeFunc(s, Invisible) }

// EscapeFunc returns s with the characters that escaped selects written as JSON would, and with
// bytes that are not UTF-8 replaced by U+FFFD.
func EscapeFunc(s string, escaped func(rune) bool) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, escaped) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !escaped(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Prefix returns the first n characters (runes) of s.
func Prefix(s string, n int) string {
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Truncate returns s, or its first n characters (runes) and "…" if s is longer.
func Truncate(s string, n int) string {
	if head := Prefix(s, n); len(head) < len(s) {
		return head + "…"
	}
	return s
}
