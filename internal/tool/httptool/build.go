package httptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/tool"
)

// maxAddress is the longest address of a request, in bytes.
const maxAddress = 8 << 10

// message is the request of a call, without headers.
type message struct {
	address string
	body    []byte // nil: none
}

// build makes the request of a call. Its error is a tool.Refusal.
func (t *httpTool) build(input json.RawMessage) (m message, err error) {
	var members map[string]json.RawMessage
	if strictjson.Unmarshal(input, &members) != nil {
		return m, tool.Refusal("The input must be a JSON object.")
	}
	path, query, body := t.request.Path, make(url.Values), make(map[string]json.RawMessage)
	for name, value := range members {
		switch place := t.request.In[name]; place {
		case toolset.InPath:
			part, err := pathPart(name, value)
			if err != nil {
				return m, err
			}
			path = strings.ReplaceAll(path, "{"+name+"}", part)
		case toolset.InQuery:
			query[name] = queryValues(value)
		case toolset.InBody:
			body[name] = value
		case toolset.WholeBody:
			m.body = value
		default:
			return m, tool.Refusal(fmt.Sprintf("Unknown member %.100q. Names are matched exactly; leave it out.", name))
		}
	}
	if toolset.PathMember.MatchString(path) {
		return m, tool.Refusal("A member of the input that is part of the address is missing.")
	}
	if m.body == nil && t.hasBody() {
		if m.body, err = json.Marshal(body); err != nil {
			return m, fmt.Errorf("encode the body of a call: %w", err)
		}
	}
	if m.address = strings.TrimSuffix(t.server.URL, "/") + path; len(query) > 0 {
		m.address += "?" + query.Encode()
	}
	if len(m.address) > maxAddress {
		return m, tool.Refusal(fmt.Sprintf("The address of the request is longer than %d KiB. Send less.", maxAddress>>10))
	}
	return m, nil
}

// hasBody reports whether a request has a JSON object as body even without members.
func (t *httpTool) hasBody() bool {
	for _, place := range t.request.In {
		if place == toolset.WholeBody {
			return false
		}
		if place == toolset.InBody {
			return true
		}
	}
	return slices.Contains([]string{"POST", "PUT", "PATCH"}, t.request.Method)
}

// pathPart returns a value as a part of one segment of a path. It must not change the path: some
// servers decode escaped slashes before they route.
func pathPart(name string, value json.RawMessage) (string, error) {
	s, ok := plainText(value)
	if !ok || s == "" || s == "." || s == ".." || strings.ContainsAny(s, `/\`) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", tool.Refusal(fmt.Sprintf("%s is a part of the address, so it must be a text or a number without slashes, "+
			"and neither empty nor dots alone.", name))
	}
	return url.PathEscape(s), nil
}

// queryValues returns the values of a member in the query: a list has one for each element.
func queryValues(value json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	}
	values := []string{}
	for _, v := range list {
		s, ok := plainText(v)
		switch {
		case ok:
			values = append(values, s)
		case string(v) != "null":
			values = append(values, string(v))
		}
	}
	return values
}

// plainText returns a text, a number, true or false as a text.
func plainText(value json.RawMessage) (s string, ok bool) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || bytes.ContainsAny(value[:1], "{[n") {
		return "", false
	}
	if value[0] != '"' {
		return string(value), true
	}
	return s, json.Unmarshal(value, &s) == nil
}
