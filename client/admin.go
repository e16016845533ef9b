package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Admin administers the workspace of a client and, with a key of scope server:admin, the server.
// Its key needs the scope config:read to read, config:write or admin to change. Lists are complete:
// a method reads all pages, and waits if the key has used up its quota of calls.
//
// Two administrators who change the same object do not overwrite each other if they name what they
// have read: a method with the parameter etag fails with the code PRECONDITION_FAILED if the object
// is not the one with this ETag, and so do all changes of an Admin from Since. An empty etag changes
// any version.
type Admin struct {
	c     *Client
	once  string // Idempotency-Key of POSTs
	since string // position of the log of changes

	planned *[]plannedChange // collects changes in place of sending them; see Check
}

// Admin returns the administration of the client's workspace.
func (c *Client) Admin() Admin { return Admin{c: c} }

// Once returns an Admin whose next creation or other POST has an Idempotency-Key: the server makes
// the change once, and a repeat gets the first response, without its secret. Use a new key for each
// change.
func (a Admin) Once(key string) Admin {
	a.once = key
	return a
}

// Since returns an Admin that changes only objects which are unchanged since a position, which is
// Workspace.LogPosition as it was read before them. It cannot change an object twice.
func (a Admin) Since(position string) Admin {
	a.since = position
	return a
}

// Versioned is an object that a response tags with its version.
type Versioned struct {
	ETag string `json:"-"`
}

func (v *Versioned) setETag(tag string) { v.ETag = tag }

// adminCall is a request of the administration API.
type adminCall struct {
	method string
	at     *url.URL
	etag   string // If-Match
	in     any    // body; nil: none
	err    error  // the call cannot be made
}

// workspace returns a call below the workspace.
func (a Admin) workspace(method string, in any, parts ...string) adminCall {
	segments, err := pathSegments(parts)
	return adminCall{method: method, at: a.c.workspaceURL(segments...), in: in, err: err}
}

// server returns a call on the server.
func (a Admin) server(method string, in any, parts ...string) adminCall {
	segments, err := pathSegments(parts)
	return adminCall{method: method, at: a.c.base.JoinPath(append([]string{"api/v1/admin"}, segments...)...), in: in, err: err}
}

// pathSegments escapes names for a path. An empty name, or one that addresses another path, would
// call another operation.
func pathSegments(names []string) ([]string, error) {
	segments := make([]string, len(names))
	for i, name := range names {
		switch segments[i] = url.PathEscape(name); name {
		case "":
			return nil, errors.New("a name is empty")
		case ".", "..":
			segments[i] = strings.ReplaceAll(name, ".", "%2E")
		}
	}
	return segments, nil
}

// with adds a parameter unless its value is "".
func (call adminCall) with(name, value string) adminCall {
	call.at = withQuery(call.at, 0, map[string]string{name: value})
	return call
}

// ifMatch adds a precondition unless it is "".
func (call adminCall) ifMatch(etag string) adminCall {
	call.etag = etag
	return call
}

// administer sends a call and decodes the data of its response.
func administer[T any](ctx context.Context, a Admin, call adminCall) (out T, err error) {
	answer, header, err := a.send(ctx, call)
	if err != nil {
		return out, err
	}
	envelope := struct{ Data *T }{&out}
	if json.Unmarshal(answer, &envelope) != nil || envelope.Data == nil {
		return out, foreignError(call.at, http.StatusOK, answer)
	}
	if tagged, ok := any(&out).(interface{ setETag(string) }); ok {
		tagged.setETag(header.Get("ETag"))
	}
	return out, nil
}

// listAll returns the items of all pages of a list.
func listAll[T any](ctx context.Context, a Admin, call adminCall) (all []T, err error) {
	for page := (Page[T]{HasMore: true}); page.HasMore; all = append(all, page.Data...) {
		answer, _, err := a.send(ctx, adminCall{method: call.method, at: withQuery(call.at, maxPage,
			map[string]string{"cursor": page.NextCursor})})
		if err != nil {
			return nil, err
		}
		if page = (Page[T]{}); json.Unmarshal(answer, &page) != nil || page.HasMore && len(page.Data) == 0 {
			return nil, foreignError(call.at, http.StatusOK, answer)
		}
	}
	return all, nil
}

// send sends a call and returns the response. A call over the quota of the key waits: the server did
// not begin it.
func (a Admin) send(ctx context.Context, call adminCall) ([]byte, http.Header, error) {
	if call.err != nil {
		return nil, nil, call.err
	}
	var body []byte
	if call.in != nil {
		var err error
		if body, err = json.Marshal(call.in); err != nil {
			return nil, nil, fmt.Errorf("encode request: %w", err)
		}
	}
	if a.planned != nil {
		return a.plan(call, body)
	}
	for {
		answer, header, err := a.try(ctx, call, body)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != http.StatusTooManyRequests || e.RetryAfter == 0 || e.RetryAfter > longestPause {
			return answer, header, err
		}
		pause := time.NewTimer(e.RetryAfter)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, nil, context.Cause(ctx)
		case <-pause.C:
		}
	}
}

// longestPause is the longest wait for the quota of the key.
const longestPause = time.Minute

// try sends a call once.
func (a Admin) try(ctx context.Context, call adminCall, body []byte) ([]byte, http.Header, error) {
	req, err := a.c.newRequest(ctx, call.method, call.at, body)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range map[string]string{"If-Match": call.etag, "Parley-Unchanged-Since": a.since} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if a.once != "" && call.method == http.MethodPost {
		req.Header.Set("Idempotency-Key", a.once)
	}
	return a.c.exchange(req)
}

// object is a body of a request.
type object map[string]any

// put sets a member whose pointer is not nil.
func put[T any](o object, name string, value *T) {
	if value != nil {
		o[name] = *value
	}
}
