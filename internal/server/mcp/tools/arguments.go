package tools

import (
	"encoding/json"
	"slices"

	"github.com/parley-server/parley/internal/server/request"
)

// MaxPage is the maximum number of items in a page.
const MaxPage = 100

// parseArguments parses the arguments of a call. It reports names that the tool does not have.
func parseArguments(raw json.RawMessage, names []string) (request.Fields, error) {
	f := request.Fields{Checks: new(request.Checks)}
	if len(raw) == 0 || string(raw) == "null" {
		return f, nil
	}
	list, err := request.Object(raw)
	if err != nil {
		return f, err
	}
	f.Members = slices.DeleteFunc(list, func(m request.Member) bool {
		unknown := !slices.Contains(names, m.Name)
		if unknown {
			f.Unknown("argument", request.Pointer(m.Name), m.Name, names)
		}
		return unknown || string(m.Value) == "null" // models set members to null that they could omit
	})
	return f, nil
}

// Page parses the start and the size of a page.
func Page(f request.Fields, usual int) (limit int, cursor string) {
	return f.Int("limit", usual, 1, MaxPage), f.String("cursor", 1000)
}
