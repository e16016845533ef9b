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

// minForm is how long a derived form is at least. The value %41%42%43 must not
// make ABC a secret.
const minForm = 8

// forms are the texts of symbols that mean a value. What escapes does to single
// characters is not here: the views undo it before anything is compared.
func forms(value []byte) [][]byte {
	list := [][]byte{symbols(value, nil)}
	for _, d := range dialects {
		d.again = true
		list = append(list, symbols(value, &d))
	}
	inHex := hex.EncodeToString(value)
	list = append(list, []byte(inHex), []byte(strings.ToUpper(inHex)))
	if utf8.Valid(value) {
		list = append(list, inUTF16(value, binary.LittleEndian), inUTF16(value, binary.BigEndian))
	}
	for before := range 3 {
		list = append(list, symbols(inBase64(value, before), nil))
	}
	kept := list[:1]
	for _, form := range list[1:] {
		if len(form) >= minForm {
			kept = append(kept, form)
		}
	}
	return kept
}

// readings are the ways in which a text must be read to find values: in every
// dialect to the end, and once where a value looks escaped itself.
func readings(values [][]byte) (list []dialect) {
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

// inBase64 is what base64 has for a value after some bytes that we do not know:
// the characters that depend on the value alone.
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
	return symbols(text, nil)
}

// fold makes one of characters that encodings exchange: the two alphabets of
// base64 differ in two characters, and a form writes a blank as a plus sign.
var fold = func() (f [256]byte) {
	for i := range f {
		f[i] = byte(i)
	}
	f[' '], f['-'], f['_'] = '+', '+', '/'
	return f
}()

// symbols are what a view makes of a whole text.
func symbols(text []byte, d *dialect) []byte {
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
