package provider

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// report is a provider's description of a failure. Only the part that label accepts is ever shown.
type report struct {
	kind, code, message string
	status              int // some servers put the HTTP status into the body
}

// parseReport parses the error bodies in use: {"error":{…}} with and without an outer "type",
// {"error":"…"}, and the bare object.
func parseReport(data []byte) report {
	var outer struct {
		Error json.RawMessage `json:"error"`
		words
	}
	if json.Unmarshal(data, &outer) != nil {
		return report{}
	}
	w := outer.words
	if len(outer.Error) > 0 {
		var inner words
		if json.Unmarshal(outer.Error, &inner) == nil {
			w = inner
		} else {
			w = words{Message: outer.Error}
		}
	}
	r := report{kind: plainText(w.Type), code: plainText(w.Code), message: plainText(w.Message)}
	if n, err := strconv.Atoi(r.code); err == nil && n >= 300 && n < 600 {
		r.status = n
	}
	return r
}

// words are raw because servers disagree about their types.
type words struct {
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Message json.RawMessage `json:"message"`
}

// plainText returns the text of a JSON string, the digits of a number, and "" for anything else.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// failureLabel names the failure for the log. It is one word or empty: a sentence could quote the
// request or the key.
func (r report) failureLabel() string {
	return identifierOrEmpty(cmp.Or(r.code, r.kind))
}

// RequestID returns a provider's id of a request, which its support needs, or "".
func RequestID(h http.Header) string {
	return identifierOrEmpty(cmp.Or(h.Get("X-Request-Id"), h.Get("Request-Id")))
}

// identifierOrEmpty returns s if it looks like an identifier, else "".
func identifierOrEmpty(s string) string {
	if len(s) > 80 || strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.')
	}) {
		return ""
	}
	return s
}

// ModelName returns a server's name of a model if it looks like one, else "".
func ModelName(s string) string {
	if identifierOrEmpty(strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(s)) == "" {
		return ""
	}
	return s
}
