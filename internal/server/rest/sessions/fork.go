package sessions

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
)

// forkRequest is the body of a request for a fork.
type forkRequest struct {
	seq *int64 // nil: the newest event
}

// maxSeq is the largest number of an event that a body can have: JSON's numbers are exact up to it.
const maxSeq = 1 << 53

var forkFields = []request.Field[forkRequest]{
	{Name: "seq", Parse: func(c *request.Checks, at string, raw json.RawMessage, f *forkRequest) {
		f.seq = new(int64(c.Integer(at, raw, 0, maxSeq)))
	}},
}

// forkSession makes a session that continues the history of another one. If the process dies between
// the fork and the record of its Idempotency-Key, a repeat makes another fork, and the first one stays
// empty.
func (s *api) forkSession(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.Query().Checks
	var f forkRequest
	request.ParseMembers(c, "", body, &f, forkFields, nil)
	key := c.Once(r.Header.Values("Idempotency-Key"))
	if err := c.Err(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	if err := r.CheckFork(); err != nil {
		return err
	}
	return call.OnceAs(http.StatusCreated, s.Server, w, r, key, []any{id, f.seq}, func(ctx context.Context) (any, error) {
		return s.Sessions.Fork(ctx, r.Caller.Workspace.ID, id, f.seq, r.Caller.Key)
	})
}
