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
var checkable = []string{"updateWorkspace", "putBudget", "deleteBudget", "putCredential", "deleteCredential", "putToolRule",
	"deleteToolRule",
	"putModelProvider", "deleteModelProvider", "addToolServer", "updateToolServer", "deleteToolServer", "updateOwnTool", "putHTTPTools",
	"addPattern", "revokePattern", "putEgress",
	"createAgent", "putAgent", "deleteAgent", "putSkill", "archiveSkill", "putDocument", "deleteDocument"}

const (
	maxChanges   = 10_000
	askTime      = 5 * time.Minute  // tool servers are asked one after another
	rehearseTime = 30 * time.Second // the changes keep their locks until the end
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
	Checked   int              `json:"checked"`
	Rejected  []rejectedChange `json:"rejected"`
	Unchecked []int            `json:"unchecked"` // changes that need the tools of a server that could not be asked
}

// checkConfiguration runs changes, one after another, with the handlers that would make them, in a
// transaction that is rolled back. It returns the errors of those that fail. It ends with its client.
func (s *api) checkConfiguration(ctx context.Context, c *call) (any, error) {
	changes := c.plannedChanges()
	if err := c.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // a longer one than the server's
	defer cancel()
	defer context.AfterFunc(c.Context(), cancel)()
	found := rejections{len(changes), []rejectedChange{}, []int{}}
	creds, err := s.readChangedCredentials(ctx, c)
	if err != nil {
		return nil, err
	}
	work := make([]plannedWork, len(changes))
	var unasked []string
	for i, p := range changes {
		work[i], err = s.planned(ctx, c, p, creds)
		if err := found.note(i, err); err != nil {
			return nil, err
		}
		if work[i].unasked != "" {
			unasked = append(unasked, work[i].unasked)
		}
	}
	asked := found.Rejected
	ctx, end := context.WithTimeout(ctx, rehearseTime)
	defer end()
	err = s.Rehearse(ctx, func(ctx context.Context, r *replan.Rehearsal) error {
		found.Rejected, found.Unchecked = slices.Clone(asked), []int{}
		for i, w := range work {
			if w.do == nil {
				continue
			}
			err := r.Step(ctx, func() error { return w.do(ctx) })
			if err == nil && w.unasked != "" || isAuthors(err) && changes[i].needsToolsOf(unasked) {
				found.Unchecked = append(found.Unchecked, i)
			} else if err := found.note(i, err); err != nil {
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
	if !isAuthors(err) {
		return err
	}
	r.Rejected = append(r.Rejected, rejectedChange{change, server.FailureOf(fault.From(err))})
	return nil
}

// isAuthors reports whether the author of a change can correct an error.
func isAuthors(err error) bool {
	f := fault.From(err)
	return f != nil && f.Code != fault.Internal && f.Code != fault.Unavailable
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

// plannedWork makes a change in a rehearsal. Its do is nil if the change is rejected already.
type plannedWork struct {
	do      func(context.Context) error
	unasked string // the entry that the change adds, if its server cannot be asked before earlier changes are made
}

// planned returns the work of a change, after it has asked the tool server that the change adds.
func (s *api) planned(ctx context.Context, c *call, p plannedChange, creds changedCredentials) (w plannedWork, err error) {
	at, err := url.Parse(p.Path)
	op, values := operation{}, map[string]string(nil)
	if err == nil {
		op, values = s.findCheckable(p.Method, at)
	}
	if op.do == nil {
		return w, fault.New(fault.RouteNotFound, "%.10s %.200s is not a change that can be checked.", p.Method, p.Path)
	}
	if !c.Caller.Scopes.Allows(op.scope) {
		return w, server.MissingScope(op.scope)
	}
	r := (&http.Request{Method: p.Method, URL: at, Header: make(http.Header)}).WithContext(ctx)
	for name, value := range values {
		r.SetPathValue(name, value)
	}
	in := newCall(&server.Request{Request: r, Caller: c.Caller, Names: c.Names})
	if op.body != nil {
		if err := in.parseBody(p.Body, op); err != nil {
			return w, err
		}
	}
	in.parseQuery(op)
	if err := in.Err(); err != nil {
		return w, err
	}
	creds.note(op, values["name"], in)
	if op.ask != nil {
		if err := op.ask(ctx, in); err != nil {
			if in.offered == nil || !creds.areUsedBy(in.offered.entry.Server()) {
				return w, err
			}
			w.unasked = in.offered.entry.Name // its tools are unknown
		}
	}
	w.do = func(ctx context.Context) error {
		_, err := op.do(ctx, in)
		return err
	}
	return w, nil
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
