package admin

import (
	"encoding/base64"
	"slices"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
)

// pageQuery are the parameters of a list.
var pageQuery = []string{"limit", "cursor"}

// usualPage is the number of items in a page if the caller sets no limit.
const usualPage = 20

// paged returns the page of a short list that the call asks for. The items are in the order of
// their keys, and a cursor is the key of the last one.
func paged[T any](c *call, items []T, key func(T) string) (any, error) {
	limit := c.query.Limit(usualPage)
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
	cursor := c.query.Cursor()
	if err := c.Err(); err != nil || cursor == "" {
		return "", err
	}
	after, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
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
