package admin

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
)

// pageQuery are the parameters of a list.
var pageQuery = []string{"limit", "cursor"}

// maxPage is the maximum number of items in a page.
const maxPage = 100

// params are the parameters of a query. Each has a value, and comes once.
type params struct {
	checks *request.Checks
	values map[string]string
}

// parseQuery parses the query of a request that may have these parameters.
func parseQuery(c *request.Checks, query string, known []string) params {
	p := params{c, make(map[string]string)}
	values, err := url.ParseQuery(query)
	if err != nil {
		c.Add(fault.Violation{Param: "/query", Rule: "format", Message: "The query string cannot be parsed."})
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name][0]
		switch {
		case !slices.Contains(known, name):
			c.Unknown("parameter", request.Pointer(name), name, known)
		case len(values[name]) > 1:
			c.Add(fault.Violation{Param: "/" + name, Rule: "repeated", Message: name + " is there more than once."})
		case value == "":
			c.Add(fault.Violation{Param: "/" + name, Rule: "min_length", Message: name + " is empty. Give it a value, or leave it out.", Expected: 1})
		case !utf8.ValidString(value) || strings.Contains(value, "\x00"):
			c.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " is not text in UTF-8."})
		default:
			p.values[name] = value
		}
	}
	return p
}

// text returns a parameter, nil if it is absent.
func (p params) text(name string) *string {
	if s, ok := p.values[name]; ok {
		return &s
	}
	return nil
}

func (p params) time(name string) *time.Time {
	if s, ok := p.values[name]; ok {
		return p.checks.Time("/"+name, s)
	}
	return nil
}

func (p params) id(name string) *uuid.UUID {
	if s, ok := p.values[name]; ok {
		return new(p.checks.ID("/"+name, s))
	}
	return nil
}

func (p params) limit() int {
	s, ok := p.values["limit"]
	if !ok {
		return 20
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.checks.Type("/limit", "integer")
		return 1
	}
	return p.checks.Within("/limit", float64(n), 1, maxPage)
}

// paged returns the page of a short list that the call asks for. The items are in the order of
// their keys, and a cursor is the key of the last one.
func paged[T any](c *call, items []T, key func(T) string) (any, error) {
	limit := c.query.limit()
	after, err := c.pageKey()
	if err != nil {
		return nil, err
	}
	if after != "" {
		items = slices.DeleteFunc(slices.Clone(items), func(item T) bool { return key(item) <= after })
	}
	page := session.Page[T]{Data: items}
	if len(items) > limit {
		page.Data, page.HasMore = items[:limit], true
		page.NextCursor = new(cursorAt(key(items[limit-1])))
	}
	if page.Data == nil {
		page.Data = []T{}
	}
	return listed{page}, nil
}

// pageKey returns the key after which the page begins, "" for the first page, or the error for an
// invalid request.
func (c *call) pageKey() (string, error) {
	cursor := c.query.text("cursor")
	if err := c.Err(); err != nil || cursor == nil {
		return "", err
	}
	after, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(after) < 2 || after[0] != 'k' {
		return "", foreignCursor()
	}
	return string(after[1:]), nil
}

func cursorAt(key string) string { return base64.RawURLEncoding.EncodeToString([]byte("k" + key)) }

func foreignCursor() error {
	return &fault.Error{Code: fault.InvalidCursor, Param: "cursor",
		Message: "This cursor does not belong to this list. Take next_cursor of the page before, or begin without a cursor."}
}
