package call

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
)

// WriteError responds with an error.
func (c *Call) WriteError(err error) error {
	e := c.RPCError(err)
	if e.Fault != nil {
		if wait := server.FailureOf(e.Fault).RetryAfter; wait > 0 {
			c.W.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	accept := strings.Join(c.R.Header.Values("Accept"), ",")
	if c.Version == V03 && c.Streams && strings.Contains(accept, request.StreamType) && !strings.Contains(accept, request.JSONType) {
		return c.WriteFrames(c.W, []any{c.Failure(e)}) // such a client of 0.3 parses only a stream
	}
	status := http.StatusOK
	if c.Plain {
		status = e.Status()
	}
	return server.WriteJSON(c.W, status, c.Failure(e))
}

// Result returns the response with a result.
func (c *Call) Result(v any) any {
	if c.Plain {
		return v
	}
	return jsonrpc.Result(c.ID, v)
}

// Failure returns the response with an error, in the form of the caller's transport and version.
func (c *Call) Failure(e *rpc.Error) any {
	if c.Plain {
		return map[string]any{"error": e.Plain()}
	}
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if c.Version == V03 {
		out.Data = e.DetailsV03()
	} else if list := e.DetailsV10(); len(list) > 0 {
		out.Data = list
	}
	return jsonrpc.Failure(c.ID, out)
}

// StoredError adds to an error that the message was stored, and its task. A client that only reads
// "try again" would not look for it.
func (c *Call) StoredError(id, context uuid.UUID, err error) error {
	e := c.RPCError(err)
	if e.Fault == nil {
		return e
	}
	e.About = rpc.About(id, context)
	if e.Fault.Code == fault.Unavailable {
		e.Message = "The message was accepted and its task continues. " + strings.TrimSuffix(e.Message, "Try again.") +
			"Read the task by its id, or send the same message again."
		e.Fault.Message = e.Message
	}
	return e
}

// RPCError converts an error to JSON-RPC. It logs errors that the caller cannot correct.
func (c *Call) RPCError(err error) *rpc.Error {
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		return e
	}
	if errors.Is(err, apikey.ErrDead) {
		err = apikey.Invalid()
	}
	if errors.Is(err, eventlog.ErrGone) {
		return &rpc.Error{Code: rpc.ServerError, Message: "Events of this task are gone. What it came to can still be read by its id.",
			About: map[string]string{"code": "SESSION_GONE"}}
	}
	f := c.Fault(c.R.Context(), err, "method", c.Method, "workspace", c.Caller.Workspace.ID, "key", c.Caller.Key)
	e := &rpc.Error{Code: rpc.ServerError, Fault: rpc.Translate(f, c.Parser.Places)}
	e.Message = e.Fault.Message
	if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok {
		e.About = rpc.About(t.TurnID, t.SessionID)
	}
	switch f.Code.Status() {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		e.Code = jsonrpc.InvalidParams
	case http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		e.Code = rpc.ContentUnsupported
	case http.StatusInternalServerError:
		e.Code = jsonrpc.InternalError
	}
	return e
}
