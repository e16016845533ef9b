// Package rpc has the errors of A2A: their codes, their text in the terms of the protocol, and
// their details in both versions.
package rpc

import (
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/jsonrpc"
)

// The codes of errors besides those of JSON-RPC.
const (
	ServerError = -32000 // no other code fits; the data contain the reason

	TaskNotFound        = -32001
	TaskNotCancelable   = -32002
	Unsupported         = -32004
	ContentUnsupported  = -32005
	VersionNotSupported = -32009
)

// reasons name the protocol's own codes in the details of errors.
var reasons = map[int]string{
	TaskNotFound: "TASK_NOT_FOUND", TaskNotCancelable: "TASK_NOT_CANCELABLE", Unsupported: "UNSUPPORTED_OPERATION",
	ContentUnsupported: "CONTENT_TYPE_NOT_SUPPORTED", VersionNotSupported: "VERSION_NOT_SUPPORTED",
}

// Error is an error of JSON-RPC.
type Error struct {
	Code    int
	Message string
	About   map[string]string // the ids that it concerns, by name
	Fault   *fault.Error      // nil: an error of the protocol only
}

// Error implements error.
func (e *Error) Error() string { return strconv.Itoa(e.Code) + " " + e.Message }

// Status returns the status of HTTP for the error.
func (e *Error) Status() int {
	switch {
	case e.Code == TaskNotFound:
		return http.StatusNotFound
	case e.Code == TaskNotCancelable:
		return http.StatusConflict
	case e.Fault != nil:
		return e.Fault.Code.Status()
	case e.Code == jsonrpc.InternalError || e.Code == ServerError:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// names are the names of statuses, as Google's APIs have them.
var names = map[int]string{
	http.StatusNotFound: "NOT_FOUND", http.StatusConflict: "FAILED_PRECONDITION", http.StatusGone: "FAILED_PRECONDITION",
	http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL", http.StatusServiceUnavailable: "UNAVAILABLE",
}

// Plain returns the error as the transport HTTP+JSON has it.
func (e *Error) Plain() any {
	name, ok := names[e.Status()]
	switch {
	case e.Code == Unsupported || e.Code == VersionNotSupported:
		name = "FAILED_PRECONDITION"
	case !ok:
		name = "INVALID_ARGUMENT"
	}
	return struct {
		Code    int              `json:"code"`
		Status  string           `json:"status"`
		Message string           `json:"message"`
		Details []map[string]any `json:"details,omitempty"`
	}{e.Status(), name, e.Message, e.DetailsV10()}
}

// About names a task and its context, with which a caller can continue.
func About(task, context uuid.UUID) map[string]string {
	return map[string]string{"taskId": task.String(), "contextId": context.String()}
}

// NoTask returns the error for a task that does not exist or belongs to another
// workspace.
func NoTask(id string) *Error {
	return &Error{Code: TaskNotFound, Message: "Task not found.", About: map[string]string{"taskId": id}}
}

// ReusedMessage returns the error for the id of another message, in this protocol's terms.
func ReusedMessage() error {
	return fault.New(fault.IdempotencyKeyReused, "This key came with another request.")
}
