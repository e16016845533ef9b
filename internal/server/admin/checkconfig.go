package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/server"
)

// checkable are the operations that a check can run: each one changes rows of PostgreSQL only.
var checkable = []string{"updateWorkspace", "putBudget", "deleteBudget", "putCredential", "deleteCredential", "putToolRule", "deleteToolRule",
	"addToolServer", "updateToolServer", "deleteToolServer", "updateOwnTool", "putHTTPTools", "addPattern", "revokePattern", "putEgress",
	"createAgent", "putAgent", "deleteAgent", "putSkill", "archiveSkill", "putDocument", "deleteDocument"}

const (
	maxChanges = 10_000
	checkTime  = 5 * time.Minute // tool servers are asked one after another
)

// plannedChange is a request of the administration API that a check runs.
type plannedChange struct {
	Method string          `json:"method"`
	Path   string          `json:"path"` // below the workspace, with its query
	Body   json.RawMessage `json:"body"`
}

// rejectedChange is the error of a planned change.
type rejectedChange struct {
	Change int            `json:"change"` // its index
	Error  server.Failure `json:"error"`
}

type rejections struct {
	Checked  int              `json:"checked"`
	Rejected []rejectedChange `json:"rejected"`
}

// checkConfiguration runs changes, one after another, with the handlers that would make them, in a
// transaction that is rolled back. It returns the errors of those that fail.
func (s *api) checkConfiguration(ctx context.Context, c *call) (any, error) {
	changes := c.plannedChanges()
	if err := c.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
	defer cancel()
	found := rejections{len(changes), []rejectedChange{}}
	work := make([]func(context.Context) error, len(changes))
	for i, p := range changes {
		do, err := s.planned(ctx, c, p)
		if err := found.note(i, err); err != nil {
			return nil, err
		}
		work[i] = do
	}
	asked := found.Rejected
	err := s.Rehearse(ctx, func(ctx context.Context, r *replan.Rehearsal) error {
		found.Rejected = slices.Clone(asked)
		for i, do := range work {
			if do == nil {
				continue
			}
			if err := found.note(i, r.Step(ctx, func() error { return do(ctx) })); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(found.Rejected, func(a, b rejectedChange) int { return a.Change - b.Change })
	return found, err
}

// note records an error that the author of a change can correct, and returns every other one.
func (r *rejections) note(change int, err error) error {
	f := fault.From(err)
	if f == nil || f.Code == fault.Internal || f.Code == fault.Unavailable {
		return err
	}
	r.Rejected = append(r.Rejected, rejectedChange{change, server.FailureOf(f)})
	return nil
}

func (c *call) plannedChanges() (changes []plannedChange) {
	c.body.Require("changes")
	if !c.body.Has("changes") {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(c.body.Raw("changes")))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&changes); err != nil {
		c.Add(fault.Violation{Param: "/changes", Rule: "type", Message: "changes is a list of objects with the members method, path and body."})
	}
	if len(changes) > maxChanges {
		c.Add(fault.Violation{Param: "/changes", Rule: "length", Message: fmt.Sprintf("At most %d changes are checked at once.", maxChanges)})
	}
	return changes
}

// planned returns the work of a change, after it has asked the tool server that the change adds. The
// work is nil if that fails.
func (s *api) planned(ctx context.Context, c *call, p plannedChange) (func(context.Context) error, error) {
	at, err := url.Parse(p.Path)
	op, values := operation{}, map[string]string(nil)
	if err == nil {
		op, values = s.findCheckable(p.Method, at)
	}
	if op.do == nil {
		return nil, fault.New(fault.RouteNotFound, "%.10s %.200s is not a change that can be checked.", p.Method, p.Path)
	}
	if !c.Caller.Scopes.Allows(op.scope) {
		return nil, server.MissingScope(op.scope)
	}
	r := (&http.Request{Method: p.Method, URL: at, Header: make(http.Header)}).WithContext(ctx)
	for name, value := range values {
		r.SetPathValue(name, value)
	}
	in := newCall(&server.Request{Request: r, Caller: c.Caller, Names: c.Names})
	if op.body != nil {
		if err := in.parseBody(p.Body, op); err != nil {
			return nil, err
		}
	}
	in.parseQuery(op)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if op.ask != nil {
		if err := op.ask(ctx, in); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		_, err := op.do(ctx, in)
		return err
	}, nil
}

// findCheckable returns the operation of a method and a path below the workspace, with the values of
// its names. do is nil if there is none.
func (s *api) findCheckable(method string, at *url.URL) (operation, map[string]string) {
	path := strings.Split(at.EscapedPath(), "/")
	for _, op := range s.operations() {
		if op.method != method || !slices.Contains(checkable, op.id) {
			continue
		}
		if values, ok := matchPath(strings.Split(strings.TrimPrefix(op.path, own), "/"), path); ok {
			return op, values
		}
	}
	return operation{}, nil
}

func matchPath(template, path []string) (map[string]string, bool) {
	if len(template) != len(path) {
		return nil, false
	}
	values := make(map[string]string)
	for i, part := range template {
		name, isName := strings.CutPrefix(part, "{")
		value, err := url.PathUnescape(path[i])
		if err != nil || !isName && part != path[i] || isName && value == "" {
			return nil, false
		}
		if isName {
			values[strings.TrimSuffix(name, "}")] = value
		}
	}
	return values, true
}
