// Package text defines which characters are invisible, escapes or masks them, and shortens texts.
// Every view of an agent's calls uses its one table, so no view hides a character that another one
// shows.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are characters that are drawn as nothing although Unicode counts them as letters, marks or
// symbols: the blank Braille pattern, a null note head, a filler of Khitan, and the blanks of
// Egyptian hieroglyphs.
const blanks = "\u2800\U0001d159\U00016fe4\U00013441\U00013442"

// IsInvisible reports whether a character is drawn as nothing, or as a blank other than the space:
// controls, direction marks, characters without width, fillers, variation selectors, and
// characters that no font has.
func IsInvisible(r rune) bool {
	return !unicode.IsPrint(r) || strings.ContainsRune(blanks, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// IsTerminalControl reports whether a character is a control or a direction mark, which changes how
// a terminal shows its neighbours.
func IsTerminalControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

const replacement = "\uFFFD"

// Mask returns s with every invisible character, and bytes that are not UTF-8, replaced by U+FFFD.
func Mask(s string) string {
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, replacement))
}

// Escape returns s on one line with every invisible character written as JSON would: \u200b.
func Escape(s string) string { return EscapeFunc(s, IsInvisible) }

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

// Truncate returns s, or its first n characters (runes) and "…" if s is longer, with bytes that are
// not UTF-8 replaced by U+FFFD. It reads no more of s than it returns.
func Truncate(s string, n int) string {
	head := Prefix(s, n)
	if len(head) < len(s) {
		return strings.ToValidUTF8(head, replacement) + "…"
	}
	return strings.ToValidUTF8(s, replacement)
}

// IsPrintable reports whether s contains only printable ASCII characters.
func IsPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// IsStorable reports whether a text column of PostgreSQL can hold s: valid UTF-8 without NUL.
func IsStorable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

// PointerToken returns name as a reference token of a JSON Pointer.
func PointerToken(name string) string { return pointerToken.Replace(name) }
