// Package rpc has the errors of A2A: their codes, their text in the terms of the protocol, and
// their details in both versions.
package rpc

import (
	"strconv"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
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
