package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// maxPage is how many items a page may have.
const maxPage = 100

// value is an argument as it was sent, nil for none. null is none, too: models like to fill
// in what they could leave out.
func (a *args) value(name string) json.RawMessage {
	for _, m := range a.list {
		if m.Name == name && string(m.Value) != "null" {
			return m.Value
		}
	}
	return nil
}

// needed is value, and a violation where there is none.
func (a *args) needed(name string) json.RawMessage {
	raw := a.value(name)
	if raw == nil {
		a.Add(fault.Violation{Param: "/" + name, Rule: "required", Message: name + " is missing."})
	}
	return raw
}

// id reads an argument that must be there and names something.
func (a *args) id(name string) uuid.UUID {
	raw := a.needed(name)
	if raw == nil {
		return uuid.Nil
	}
	return a.UUID("/"+name, raw)
}

// word reads a text of 1 to limit characters, "" where there is none.
func (a *args) word(name string, limit int) string {
	raw := a.value(name)
	if raw == nil {
		return ""
	}
	return a.Word("/"+name, raw, limit)
}

func (a *args) oneOf(name string, allowed ...string) string {
	raw := a.value(name)
	if raw == nil {
		return ""
	}
	return a.OneOf("/"+name, raw, allowed...)
}

func (a *args) integer(name string, usual, low, high int) int {
	raw := a.value(name)
	if raw == nil {
		return usual
	}
	return a.Integer("/"+name, raw, low, high)
}

func (a *args) time(name string) *time.Time {
	text := a.word(name, 64)
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		a.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " is not a time like 2026-01-31T12:00:00Z.", Expected: "date-time"})
		return nil
	}
	return &t
}

// page reads where a page begins and how long it is.
func (a *args) page(usual int) (limit int, cursor string) {
	return a.integer("limit", usual, 1, maxPage), a.word("cursor", 1000)
}

// text reads content that may be empty, and may not be what no text can be.
func (a *args) text(name string) string {
	raw := a.needed(name)
	if raw == nil {
		return ""
	}
	s, ok := a.Text("/"+name, raw)
	if ok && request.Unsound(raw) {
		a.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: fmt.Sprintf("%s holds a NUL or half of a surrogate pair.", name)})
	}
	return s
}

// without are the arguments that remain when some are taken away, and those that are null.
func (a *args) without(names ...string) []request.Member {
	return slices.DeleteFunc(slices.Clone(a.list), func(m request.Member) bool {
		return slices.Contains(names, m.Name) || strings.TrimSpace(string(m.Value)) == "null"
	})
}
