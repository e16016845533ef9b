// Package fault describes the failures that a caller can act on, in the format of the public error
// envelope. Every other failure is an ordinary error, and callers receive "Internal error."
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Type groups codes by what the caller can do about them.
type Type string

const (
	InvalidRequest Type = "invalid_request_error"
	Authentication Type = "authentication_error"
	Permission     Type = "permission_error"
	NotFound       Type = "not_found_error"
	Conflict       Type = "conflict_error"
	Idempotency    Type = "idempotency_error"
	RateLimit      Type = "rate_limit_error"
	API            Type = "api_error"
)

// Error is one failure. Its Code decides the type and the HTTP status.
type Error struct {
	Code    Code
	Message string // a full sentence, with the remedy if there is one
	Param   string // the invalid field or parameter, or ""
	Detail  Detail
}

// Detail holds the members of only some codes.
type Detail struct {
	Candidates    []string      `json:"candidates,omitempty"`     // UNKNOWN_SKILL: at most 5, nearest first
	Violations    []Violation   `json:"violations,omitempty"`     // every violation at once
	AvailableKeys []string      `json:"available_keys,omitempty"` // UNKNOWN_SECRET: names only
	RequiredScope string        `json:"required_scope,omitempty"` // INSUFFICIENT_SCOPE
	RetryAfter    time.Duration `json:"-"`                        // sent as whole seconds, at least 1
	Turn          any           `json:"turn,omitempty"`           // TURN_IN_PROGRESS; UNAVAILABLE after a message was accepted
	Budget        string        `json:"budget,omitempty"`         // BUDGET_EXCEEDED: workspace, key or user
	Status        string        `json:"status,omitempty"`         // approval conflicts: the standing decision
}

// Violation is one invalid part of a request.
type Violation struct {
	Param      string `json:"param"` // JSON pointer, "/due_date"
	Rule       string `json:"rule"`  // type, enum, required, unknown, format, exactly_one, max_length …
	Message    string `json:"message"`
	Expected   any    `json:"expected,omitempty"`
	Allowed    []any  `json:"allowed,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// New returns an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an INVALID_REQUEST with these violations; the message is the first one's.
func Invalid(violations ...Violation) *Error {
	e := &Error{Code: InvalidRequestBody, Message: violations[0].Message, Detail: Detail{Violations: violations}}
	if len(violations) > 1 {
		e.Message += fmt.Sprintf(" (and %d more)", len(violations)-1)
	}
	if p := violations[0].Param; len(p) > 1 {
		e.Param = p[1:]
	}
	return e
}

// From returns the fault in an error chain, or nil.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}
