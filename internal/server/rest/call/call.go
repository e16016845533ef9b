// Package call holds what the operations of the REST API share: their request, and the repeat of a
// request under an Idempotency-Key.
package call

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
)

// Handler responds to one operation. It writes only on success.
type Handler func(http.ResponseWriter, *Request) error

// Request is a request for an operation of the document.
type Request struct {
	*http.Request
	Operation string        // its operationId
	Params    []string      // its query parameters
	Caller    server.Caller // zero for public operations
}

// Query returns the query parameters.
func (r *Request) Query() *request.Query {
	return request.ParseQuery(&request.Checks{}, r.URL.RawQuery, r.Params)
}

// CheckBare rejects query parameters, and an Accept header without JSON.
func (r *Request) CheckBare() error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	return r.Query().Err()
}

// SessionID returns the session in the path. A malformed id is not found.
func (r *Request) SessionID() (uuid.UUID, error) {
	id, ok := request.ID(r.PathValue("sessionId"))
	if !ok {
		return uuid.Nil, fault.New(fault.SessionNotFound, "The session id in the address is not valid. "+
			"An id looks like %s; the list of sessions has those that exist.", uuid.Nil)
	}
	return id, nil
}

// Link adds the URLs that read and cancel a turn.
func (r *Request) Link(s *server.Server, t *session.ActiveTurn) {
	server.Link(s.Base(r.Request), r.Caller.Workspace, t)
}
