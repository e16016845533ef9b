package client

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// RejectedChange is a change that the server would reject, or that cannot be made.
type RejectedChange struct {
	Change int // its index
	Err    error
}

// plannedChange is a change that Check sends.
type plannedChange struct {
	Method string          `json:"method"`
	Path   string          `json:"path"` // below the workspace
	Body   json.RawMessage `json:"body,omitempty"`
}

// maxCheck is the size of the changes in one request, in bytes. The server accepts 8 MiB.
const maxCheck = 7 << 20

// Check returns the changes of the configuration that the server would reject, each one after those
// before it, with the first error of each. It changes nothing, but connects to tool servers that a
// change adds. A change makes calls with the Admin that it receives, whose methods return zero values.
//
// Changes of more than 7 MiB are checked in several parts, which do not see each other: put those that
// others depend on first, and documents last.
func (a Admin) Check(ctx context.Context, changes []func(Admin) error) ([]RejectedChange, error) {
	var calls []plannedChange
	var changeOf []int // the change of a call
	errs := make(map[int]error)
	for i, change := range changes {
		collecting := a
		collecting.planned = &calls
		if err := change(collecting); err != nil {
			errs[i] = err
		}
		for len(changeOf) < len(calls) {
			changeOf = append(changeOf, i)
		}
	}
	for from := 0; from < len(calls); {
		to, size := from, 0
		for ; to < len(calls) && (to == from || size+len(calls[to].Body) <= maxCheck); to++ {
			size += len(calls[to].Body) + len(calls[to].Path) + 64
		}
		rejected, err := a.check(ctx, calls[from:to])
		if err != nil {
			return nil, err
		}
		for _, r := range rejected {
			if i := changeOf[from+r.Change]; errs[i] == nil {
				errs[i] = r.Err
			}
		}
		from = to
	}
	list := []RejectedChange{}
	for _, i := range slices.Sorted(maps.Keys(errs)) {
		list = append(list, RejectedChange{i, errs[i]})
	}
	return list, nil
}

func (a Admin) check(ctx context.Context, changes []plannedChange) ([]RejectedChange, error) {
	a.since, a.once = "", ""
	found, err := administer[struct {
		Rejected []struct {
			Change int    `json:"change"`
			Error  *Error `json:"error"`
		} `json:"rejected"`
	}](ctx, a, a.workspace(http.MethodPost, object{"changes": changes}, "config", "check"))
	if err != nil {
		return nil, err
	}
	list := []RejectedChange{}
	for _, r := range found.Rejected {
		if r.Error == nil || r.Change < 0 || r.Change >= len(changes) {
			return nil, errors.New("the server names no rejected change, or no reason")
		}
		list = append(list, RejectedChange{r.Change, r.Error})
	}
	return list, nil
}

// plan collects a change.
func (a Admin) plan(call adminCall, body []byte) ([]byte, http.Header, error) {
	path := strings.TrimPrefix(call.at.EscapedPath(), a.c.workspaceURL().EscapedPath())
	if call.at.RawQuery != "" {
		path += "?" + call.at.RawQuery
	}
	*a.planned = append(*a.planned, plannedChange{call.method, path, body})
	return []byte(`{"data":{}}`), http.Header{}, nil
}
