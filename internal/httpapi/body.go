package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
)

const (
	maxBody  = 1 << 20 // bytes of a JSON body
	maxDepth = 64      // how deep it may be nested
	// bodyTime is how long a body may take to arrive.
	bodyTime = 30 * time.Second
)

// member is one name and value of a JSON object, as it was sent.
type member struct {
	name  string
	value json.RawMessage
}

// readBody takes a request's JSON object apart; raw is what came. Size and type are
// checked before anything is read.
func readBody(w http.ResponseWriter, r *http.Request) (list []member, raw []byte, err error) {
	if r.ContentLength > maxBody {
		return nil, nil, tooLarge()
	}
	if err := jsonContent(r.Header); err != nil {
		return nil, nil, err
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
	raw, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		hangUp(w)
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, nil, tooLarge()
		}
		return nil, nil, fault.New(fault.InvalidJSON, "The body ended before it was complete.")
	}
	_ = rc.SetReadDeadline(time.Time{}) // or the connection would count as closed later
	list, err = object(raw)
	return list, raw, err
}

// hangUp ends the connection with the answer. Else what is left of the body would be
// read before the answer is sent, and perhaps it never comes.
func hangUp(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

func tooLarge() *fault.Error {
	return fault.New(fault.PayloadTooLarge, "The body is larger than %d bytes.", maxBody)
}

// jsonContent checks that a body is uncompressed JSON in UTF-8.
func jsonContent(h http.Header) error {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.New(fault.UnsupportedMediaType, "Send the body without Content-Encoding.")
	}
	t, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset, hasCharset := params["charset"]
	if err != nil || t != jsonType || hasCharset && !strings.EqualFold(charset, "utf-8") || len(h.Values("Content-Type")) != 1 {
		return fault.New(fault.UnsupportedMediaType, "Send the body as Content-Type: application/json, in UTF-8.")
	}
	return nil
}

// object parses a JSON object strictly: nothing after it, no name twice, no nesting
// beyond maxDepth, UTF-8 throughout.
func object(body []byte) ([]member, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, fault.New(fault.InvalidJSON, "The body is empty.")
	}
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidJSON, "The body is not UTF-8.")
	}
	if deep(body) {
		return nil, fault.New(fault.InvalidJSON, "The body is nested deeper than %d levels.", maxDepth)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		var at int64
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		}
		return nil, fault.New(fault.InvalidJSON, "The body is not JSON: %s at byte %d.", err, at)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a number need not fit a float64 to be looked at
	if err := walk(dec); err != nil {
		return nil, err
	}
	if body = bytes.TrimSpace(body); body[0] != '{' {
		return nil, fault.Invalid(fault.Violation{Param: "", Rule: "type", Message: "The body must be a JSON object.", Expected: "object"})
	}
	return members(body), nil
}

// deep reports whether a body opens more than maxDepth levels, be it JSON or not:
// the parser has a limit of its own, and other words for it.
func deep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// walk looks for names that appear twice. The body is not deep.
func walk(dec *json.Decoder) error {
	tok, err := dec.Token()
	if err != nil {
		return fault.New(fault.InvalidJSON, "The body is not JSON: %s.", err)
	}
	delim, nested := tok.(json.Delim)
	if !nested {
		return nil
	}
	seen := make(map[any]bool)
	for dec.More() {
		if delim == '{' {
			name, err := dec.Token()
			if err != nil {
				return fault.New(fault.InvalidJSON, "The body is not JSON: %s.", err)
			}
			if seen[name] {
				return fault.New(fault.InvalidJSON, "The name %q appears twice in one object.", short(fmt.Sprint(name)))
			}
			seen[name] = true
		}
		if err := walk(dec); err != nil {
			return err
		}
	}
	_, _ = dec.Token() // the closing delimiter
	return nil
}

// members lists what is in a JSON object that is known to be well-formed.
func members(object []byte) []member {
	dec := json.NewDecoder(bytes.NewReader(object))
	_, _ = dec.Token()
	var list []member
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		_ = dec.Decode(&value)
		text, _ := name.(string)
		list = append(list, member{text, value})
	}
	return list
}

// unsound reports whether a well-formed JSON string holds what no text can: NUL, or
// half of a surrogate pair.
func unsound(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // at the escaped character
		if raw[i] != 'u' {
			continue
		}
		unit := hex4(raw[i+1:])
		i += 4
		switch {
		case unit == 0, unit >= 0xdc00 && unit < 0xe000:
			return true
		case unit >= 0xd800 && unit < 0xdc00:
			if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return true
			}
			if low := hex4(raw[i+3:]); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 6
		}
	}
	return false
}

// hex4 reads four hexadecimal digits.
func hex4(p []byte) (n rune) {
	for _, c := range p[:4] {
		n <<= 4
		switch {
		case c >= 'a':
			n |= rune(c - 'a' + 10)
		case c >= 'A':
			n |= rune(c - 'A' + 10)
		default:
			n |= rune(c - '0')
		}
	}
	return n
}
