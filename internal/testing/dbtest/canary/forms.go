package canary

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// form is one encoding of a value.
type form struct {
	name string
	text []byte
}

// shortest is the minimum length of a form: shorter ones would match by chance.
const shortest = 8

// forms returns the encodings of a value.
func forms(value string) []form {
	var list []form
	add := func(name, text string) {
		if len(text) < shortest {
			return
		}
		for _, f := range list {
			if string(f.text) == text {
				return
			}
		}
		list = append(list, form{name, []byte(text)})
	}
	add("plain", value)
	// Every escape of the other characters leaves these unchanged, even in a truncated text.
	for _, word := range strings.FieldsFunc(value, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		add("a part", word)
	}
	add("hex", hex.EncodeToString([]byte(value)))
	add("upper case hex", strings.ToUpper(hex.EncodeToString([]byte(value))))
	for shift := range 3 {
		for name, enc := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
			add(fmt.Sprintf("%s after %d bytes", name, shift), aligned(enc, value, shift))
		}
	}
	add("query escaped", url.QueryEscape(value))
	add("path escaped", url.PathEscape(value))
	add("percent encoded", percent(value, "%%%02X"))
	add("lower case percent encoded", percent(value, "%%%02x"))
	quoted, _ := json.Marshal(value) // a string cannot fail
	add("JSON", strings.Trim(string(quoted), `"`))
	add("JSON with plain HTML", unhtml.Replace(strings.Trim(string(quoted), `"`)))
	add("quoted", strings.Trim(strconv.Quote(value), `"`))
	add("bytes", strings.Trim(fmt.Sprint([]byte(value)), "[]"))
	add("bytes in Go", strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(value)), "[]byte{"), "}"))
	return list
}

var unhtml = strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">")

// aligned returns the part of base64 that does not depend on the text around the value, if shift
// bytes of a group of three precede it.
func aligned(enc *base64.Encoding, value string, shift int) string {
	text := enc.EncodeToString(append(make([]byte, shift), value...))
	return text[(shift*8+5)/6 : (shift+len(value))*8/6]
}

func percent(value, verb string) string {
	var b strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&b, verb, value[i])
	}
	return b.String()
}
