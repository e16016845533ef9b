package mcp

import (
	"encoding/json"
	"slices"

	"github.com/parley-server/parley/internal/server/request"
)

// maxPage is how many items a page may have.
const maxPage = 100

// parseArguments reads the arguments of a call. It notes names that the tool does not have.
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
		return unknown || string(m.Value) == "null" // models fill in what they could leave out
	})
	return f, nil
}

// parsePage reads where a page begins and how long it is.
func parsePage(f request.Fields, usual int) (limit int, cursor string) {
	return f.Int("limit", usual, 1, maxPage), f.String("cursor", 1000)
}
