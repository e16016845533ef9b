package a2a

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
)

// The codes of errors besides those of JSON-RPC.
const (
	serverError = -32000 // no other code fits; the data contain the reason

	taskNotFound        = -32001
	taskNotCancelable   = -32002
	unsupported         = -32004
	contentUnsupported  = -32005
	versionNotSupported = -32009
)

// reasons name the protocol's own codes in the details of errors.
var reasons = map[int]string{
	taskNotFound: "TASK_NOT_FOUND", taskNotCancelable: "TASK_NOT_CANCELABLE", unsupported: "UNSUPPORTED_OPERATION",
	contentUnsupported: "CONTENT_TYPE_NOT_SUPPORTED", versionNotSupported: "VERSION_NOT_SUPPORTED",
}

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int
	Message string
	about   map[string]string // the ids that it concerns, by name
	fault   *fault.Error      // nil: an error of the protocol only
}

func (e *rpcError) Error() string { return strconv.Itoa(e.Code) + " " + e.Message }

// about names a task and its context, with which a caller can continue.
func about(task, context uuid.UUID) map[string]string {
	return map[string]string{"taskId": task.String(), "contextId": context.String()}
}

// storedError adds to an error that the message was stored, and its task. A client that only reads
// "try again" would not look for it.
func (c *call) storedError(id, context uuid.UUID, err error) error {
	e := c.rpcErrorOf(err)
	if e.fault == nil {
		return e
	}
	e.about = about(id, context)
	if e.fault.Code == fault.Unavailable {
		e.Message = "The message was accepted and its task continues. " + strings.TrimSuffix(e.Message, "Try again.") + "Read the task by its id, or send the same message again."
		e.fault.Message = e.Message
	}
	return e
}

// taskNotFoundError returns the error for a task that does not exist or belongs to another
// workspace.
func taskNotFoundError(id string) *rpcError {
	return &rpcError{Code: taskNotFound, Message: "Task not found.", about: map[string]string{"taskId": id}}
}

// reusedError returns the error for the id of another message, in this protocol's terms.
func reusedError() error {
	return fault.New(fault.IdempotencyKeyReused, "This key came with another request.")
}

// rpcErrorOf converts an error to JSON-RPC. It logs errors that the caller cannot correct.
func (c *call) rpcErrorOf(err error) *rpcError {
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e
	}
	if errors.Is(err, apikey.ErrDead) {
		err = apikey.Invalid()
	}
	if errors.Is(err, eventlog.ErrGone) {
		return &rpcError{Code: serverError, Message: "Events of this task are gone. What it came to can still be read by its id.", about: map[string]string{"code": "SESSION_GONE"}}
	}
	f := c.Fault(c.r.Context(), err, "method", c.method, "workspace", c.caller.Workspace.ID, "key", c.caller.Key)
	e := &rpcError{Code: serverError, fault: c.translateFault(f)}
	e.Message = e.fault.Message
	if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok {
		e.about = about(t.TurnID, t.SessionID)
	}
	switch f.Code.Status() {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		e.Code = jsonrpc.InvalidParams
	case http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		e.Code = contentUnsupported
	case http.StatusInternalServerError:
		e.Code = jsonrpc.InternalError
	}
	return e
}
