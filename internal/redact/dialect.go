package redact

import (
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// dialect is one way of escaping characters.
type dialect struct {
	mark byte // begins every escape
	// decode decodes an escape at the beginning of text: it appends the meaning to dst and returns
	// the length of the escape. more reports that text is only the beginning of an escape; length 0
	// means that text is not an escape.
	decode func(dst, text []byte) (meaning []byte, length int, more bool)
	// next returns the result of decode from the last byte of text alone, if the bytes before it
	// are the beginning of an escape. It is an optimization.
	next func(text []byte) progress
	drop bool // a mark that begins no escape has no meaning
	// Text that is escaped more than once is decoded repeatedly. That changes a value that looks
	// escaped itself, so such a value needs the single decoding, too.
	again bool
}

// progress is the state of an escape.
type progress int

const (
	undecided  progress = iota // decode decides
	unfinished                 // the beginning of an escape
	noEscape                   // not an escape, and none of its bytes after the first begins one, except the last
)

// dialects are the escapes that the views undo.
var dialects = [...]dialect{
	{mark: '%', decode: decodePercent, next: percentNext},
	{mark: '\\', decode: decodeBackslash, next: backslashNext, drop: true},
	{mark: '&', decode: decodeEntity, next: entityNext},
}

// maxEscape is the maximum length of an escape in bytes of text, including those with escaped
// marks; widest is the maximum number of bytes for each symbol of a whole form.
const (
	maxEscape = 64
	widest    = 8
)

// decodePercent decodes %2B.
func decodePercent(dst, text []byte) (meaning []byte, length int, more bool) {
	for i, c := range text[1:min(3, len(text))] {
		if !isHex(c) {
			return nil, 0, false
		} else if i == 1 {
			return append(dst, hexValue(text[1])<<4|hexValue(c)), 3, false
		}
	}
	return nil, 0, true
}

func percentNext(text []byte) progress {
	switch {
	case !isHex(text[len(text)-1]):
		return noEscape
	case len(text) < 3:
		return unfinished
	}
	return undecided
}

// decodeBackslash decodes the escapes of JSON, and \x2b. Two backslashes become one, which may
// begin another escape.
func decodeBackslash(dst, text []byte) (meaning []byte, length int, more bool) {
	if len(text) < 2 {
		return nil, 0, true
	}
	switch text[1] {
	case 'n':
		return append(dst, '\n'), 2, false
	case 'r':
		return append(dst, '\r'), 2, false
	case 't':
		return append(dst, '\t'), 2, false
	case 'x':
		return decodeCodepoint(dst, text, 2)
	case 'u':
		return decodeCodepoint(dst, text, 4)
	}
	return append(dst, text[1]), 2, false
}

func backslashNext(text []byte) progress {
	digits := 4
	if text[1] == 'x' {
		digits = 2
	}
	switch last := text[len(text)-1]; {
	case len(text) == 2 && (last == 'x' || last == 'u'), len(text) > 2 && len(text) < 2+digits && isHex(last):
		return unfinished
	}
	return undecided
}

// decodeCodepoint decodes a letter and digits after the backslash, and both halves of a surrogate
// pair. Without the digits the letter is an ordinary letter.
func decodeCodepoint(dst, text []byte, digits int) (meaning []byte, length int, more bool) {
	for i, c := range text[2:min(2+digits, len(text))] {
		if !isHex(c) {
			return append(dst, text[1]), 2, false
		} else if i == digits-1 {
			n, _ := strconv.ParseUint(string(text[2:2+digits]), 16, 32)
			if digits == 2 {
				return append(dst, byte(n)), 4, false
			}
			return decodeSurrogates(dst, rune(n), text)
		}
	}
	return nil, 0, true
}

func decodeSurrogates(dst []byte, r rune, text []byte) (meaning []byte, length int, more bool) {
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), 6, false
	}
	for i := 6; i < 12; i++ {
		switch {
		case i >= len(text):
			return nil, 0, true
		case i == 6 && text[i] != '\\', i == 7 && text[i] != 'u', i > 7 && !isHex(text[i]):
			return utf8.AppendRune(dst, utf8.RuneError), 6, false
		}
	}
	low, _ := strconv.ParseUint(string(text[8:12]), 16, 32)
	return utf8.AppendRune(dst, utf16.DecodeRune(r, rune(low))), 12, false
}

// decodeEntity decodes &amp;, &#38; and &#x26;.
func decodeEntity(dst, text []byte) (meaning []byte, length int, more bool) {
	for i, c := range text[1:] {
		switch {
		case c == ';':
			return decodeReference(dst, text[:i+2])
		case c == '#' && i == 0, isAlphanumeric(c):
		default:
			return nil, 0, false
		}
	}
	return nil, 0, true
}

func entityNext(text []byte) progress {
	switch last := text[len(text)-1]; {
	case last == ';' && len(text) > 2:
		return undecided
	case isAlphanumeric(last), last == '#' && len(text) == 2:
		return unfinished
	}
	return noEscape
}

// decodeReference decodes a whole character reference. The references that encoders write for ASCII
// need no memory.
func decodeReference(dst, text []byte) (meaning []byte, length int, more bool) {
	switch string(text) {
	case "&amp;":
		return append(dst, '&'), len(text), false
	case "&lt;":
		return append(dst, '<'), len(text), false
	case "&gt;":
		return append(dst, '>'), len(text), false
	case "&quot;":
		return append(dst, '"'), len(text), false
	}
	if plain := html.UnescapeString(string(text)); plain != string(text) {
		return append(dst, plain...), len(text), false
	}
	return nil, 0, false
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// hexValue returns the value of a hexadecimal digit.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
