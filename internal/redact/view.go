package redact

import (
	"encoding/hex"
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// symbol is one byte of what a text means, and where in the text it stands.
type symbol struct {
	b          byte
	start, end int
}

// dialect is one way of escaping characters.
type dialect struct {
	mark byte // begins every escape
	// decode reads an escape at the beginning of text: what it stands for and how
	// long it is. It wants more where text is only the beginning of one; without
	// a length it is none.
	decode func(text []byte) (meaning []byte, length int, more bool)
	drop   bool // a mark that begins no escape stands for nothing
	// What is escaped more than once is read to the end. That changes a value which
	// looks escaped itself, so that such a value needs the plain reading, too.
	again bool
}

// dialects are those that the views undo.
var dialects = [...]dialect{
	{mark: '%', decode: percent},
	{mark: '\\', decode: backslash, drop: true},
	{mark: '&', decode: entity},
}

// maxEscape bounds an escape in bytes of text, those with escaped marks too; widest
// is how many bytes there may be for each symbol of a whole form.
const (
	maxEscape = 64
	widest    = 8
)

// view reads a text in a dialect.
type view struct {
	*dialect
	emit    func(symbol)
	pending []symbol        // an escape that has begun
	room    []symbol        // holds pending, so that marks in a row need no memory each
	text    [maxEscape]byte // the bytes of pending
}

// feed takes the next byte.
func (v *view) feed(s symbol) {
	if len(v.pending) == 0 && (v.dialect == nil || s.b != v.mark) {
		v.emit(s)
		return
	}
	if len(v.pending) == cap(v.pending) { // the bytes already read precede it in the buffer
		if need := len(v.pending) + 1; cap(v.room) < 2*need {
			v.room = make([]symbol, 0, max(4*need, 2*maxEscape))
		}
		v.pending = append(v.room[:0], v.pending...)
	}
	v.pending = append(v.pending, s)
	v.settle(false)
}

// finish gives up waiting for the end of an escape.
func (v *view) finish() { v.settle(true) }

func (v *view) settle(whole bool) {
	for len(v.pending) > 0 {
		first := v.pending[0]
		if first.b != v.mark {
			v.emit(first)
			v.pending = v.pending[1:]
			continue
		}
		n := 0
		for ; n < len(v.pending) && n < maxEscape; n++ {
			v.text[n] = v.pending[n].b
		}
		meaning, length, more := v.decode(v.text[:n])
		if more && !whole && v.pending[len(v.pending)-1].end-first.start < maxEscape {
			return
		}
		if more || length == 0 {
			if !v.drop {
				v.emit(first)
			}
			v.pending = v.pending[1:]
			continue
		}
		end := v.pending[length-1].end
		v.pending = v.pending[length:]
		var read []symbol
		for _, b := range meaning {
			read = append(read, symbol{b, first.start, end})
		}
		if v.again {
			v.pending = append(read, v.pending...)
			continue
		}
		for _, s := range read {
			v.emit(s)
		}
	}
	v.pending = v.room[:0]
}

// percent reads %2B.
func percent(text []byte) (meaning []byte, length int, more bool) {
	for i, c := range text[1:min(3, len(text))] {
		if !isHex(c) {
			return nil, 0, false
		} else if i == 1 {
			b, _ := hex.DecodeString(string(text[1:3]))
			return b, 3, false
		}
	}
	return nil, 0, true
}

// backslash reads the escapes of JSON, and \x2b. Two backslashes are one, which
// then may escape again.
func backslash(text []byte) (meaning []byte, length int, more bool) {
	if len(text) < 2 {
		return nil, 0, true
	}
	switch text[1] {
	case 'n':
		return []byte{'\n'}, 2, false
	case 'r':
		return []byte{'\r'}, 2, false
	case 't':
		return []byte{'\t'}, 2, false
	case 'x':
		return codepoint(text, 2)
	case 'u':
		return codepoint(text, 4)
	}
	return text[1:2:2], 2, false
}

// codepoint reads a letter and digits after the backslash, and both halves of a
// surrogate pair. Where the digits are missing the letter is a letter.
func codepoint(text []byte, digits int) (meaning []byte, length int, more bool) {
	for i, c := range text[2:min(2+digits, len(text))] {
		if !isHex(c) {
			return text[1:2:2], 2, false
		} else if i == digits-1 {
			n, _ := strconv.ParseUint(string(text[2:2+digits]), 16, 32)
			if digits == 2 {
				return []byte{byte(n)}, 4, false
			}
			return surrogates(rune(n), text)
		}
	}
	return nil, 0, true
}

func surrogates(r rune, text []byte) (meaning []byte, length int, more bool) {
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(nil, r), 6, false
	}
	for i := 6; i < 12; i++ {
		switch {
		case i >= len(text):
			return nil, 0, true
		case i == 6 && text[i] != '\\', i == 7 && text[i] != 'u', i > 7 && !isHex(text[i]):
			return utf8.AppendRune(nil, utf8.RuneError), 6, false
		}
	}
	low, _ := strconv.ParseUint(string(text[8:12]), 16, 32)
	return utf8.AppendRune(nil, utf16.DecodeRune(r, rune(low))), 12, false
}

// entity reads &amp;, &#38; and &#x26;.
func entity(text []byte) (meaning []byte, length int, more bool) {
	for i, c := range text[1:] {
		switch {
		case c == ';':
			whole := string(text[:i+2])
			if plain := html.UnescapeString(whole); plain != whole {
				return []byte(plain), i + 2, false
			}
			return nil, 0, false
		case c == '#' && i == 0, '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z':
		default:
			return nil, 0, false
		}
	}
	return nil, 0, true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
