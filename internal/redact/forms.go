package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minForm is the minimum length of a derived form of a value of that length or more. The value
// %41%42%43 must not make ABC a secret. The forms of a shorter value are at least as long as the
// value.
const minForm = 8

// formsOf returns the symbols that represent a value. It excludes escapes of single characters: the
// views undo them before the comparison.
func formsOf(value []byte) [][]byte {
	list := [][]byte{symbolsOf(value, nil)}
	for _, d := range dialects {
		d.again = true
		list = append(list, symbolsOf(value, &d))
	}
	for _, v := range lineEnds(value) {
		inHex := hex.EncodeToString(v)
		list = append(list, []byte(inHex), []byte(strings.ToUpper(inHex)))
		if utf8.Valid(v) {
			list = append(list, inUTF16(v, binary.LittleEndian), inUTF16(v, binary.BigEndian))
		}
		for before := range 3 {
			list = append(list, symbolsOf(inBase64(v, before), nil))
		}
	}
	least := min(minForm, len(value))
	kept := list[:1]
	for _, form := range list[1:] {
		if len(form) >= least {
			kept = append(kept, form)
		}
	}
	return kept
}

// lineEnds returns a value with LF and with CRLF as its line ends, without the last line end:
// programs change and trim line ends. Only encodings that hide line ends need it; in other texts
// symbols removes them.
func lineEnds(value []byte) [][]byte {
	if !bytes.ContainsAny(value, "\r\n") {
		return [][]byte{value}
	}
	lf := bytes.ReplaceAll(bytes.TrimRight(value, "\r\n"), []byte("\r\n"), []byte("\n"))
	return [][]byte{lf, bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n"))}
}

// readingsOf returns the ways in which a text must be read to find values: in every dialect
// repeatedly, and once if a value looks escaped itself.
func readingsOf(values [][]byte) (list []dialect) {
	for _, d := range dialects {
		once := slices.ContainsFunc(values, func(v []byte) bool { return bytes.IndexByte(v, d.mark) >= 0 })
		if once {
			list = append(list, d)
		}
		d.again = true
		list = append(list, d)
	}
	return list
}

// inBase64 returns the base64 of a value after some unknown bytes: the characters that depend only
// on the value.
func inBase64(value []byte, before int) []byte {
	whole := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), value...))
	first := (before*8 + 5) / 6
	last := (before + len(value)) * 8 / 6
	return []byte(whole[first:last])
}

func inUTF16(value []byte, order binary.AppendByteOrder) []byte {
	var text []byte
	for _, unit := range utf16.Encode([]rune(string(value))) {
		text = order.AppendUint16(text, unit)
	}
	return symbolsOf(text, nil)
}

// fold maps characters that encodings exchange to one: the two alphabets of base64 differ in two
// characters, and a form writes a blank as a plus sign.
var fold = func() (f [256]byte) {
	for i := range f {
		f[i] = byte(i)
	}
	f[' '], f['-'], f['_'] = '+', '+', '/'
	return f
}()

// symbolsOf returns the symbols of a whole text in a view.
func symbolsOf(text []byte, d *dialect) []byte {
	var out []byte
	v := view{dialect: d, emit: func(s symbol) {
		if s.b != '\r' && s.b != '\n' {
			out = append(out, fold[s.b])
		}
	}}
	for i, c := range text {
		v.feed(symbol{c, i, i + 1})
	}
	v.finish()
	return out
}
