// Package actor carries the administrator of a change in the context.
//
// API handlers that change configuration, forms of the web application and commands on the database
// put an Actor into the context. Package replan passes it to PostgreSQL with each statement, where
// triggers record it in admin_log. Messages and turns carry none.
package actor

import (
	"context"
	"encoding/json"
)

// Kind is the way by which an administrator came in.
type Kind string

const (
	Key     Kind = "key"     // an API key
	Member  Kind = "member"  // a signed-in member
	Command Kind = "command" // the command line on the database
)

// Actor is the administrator of a change.
type Actor struct {
	Kind      Kind   `json:"kind"`
	ID        string `json:"id,omitempty"`      // of the key or the member
	Name      string `json:"name,omitempty"`    // of the key, the member or the operating system's user
	Address   string `json:"address,omitempty"` // of the client
	RequestID string `json:"request_id,omitempty"`

	// Seen is a position of the log of changes. A change of an object that was changed after it
	// fails; "" changes any version.
	Seen string `json:"seen,omitempty"`
}

type contextKey struct{}

// With returns a context whose changes are recorded as those of a.
func With(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// From returns the actor of the context; ok is false without one.
func From(ctx context.Context) (a Actor, ok bool) {
	a, ok = ctx.Value(contextKey{}).(Actor)
	return a, ok
}

// Setting returns the actor of the context as the value of PostgreSQL's setting parley.actor; ok is
// false if there is none.
func Setting(ctx context.Context) (text string, ok bool) {
	a, ok := From(ctx)
	if !ok {
		return "", false
	}
	data, err := json.Marshal(a)
	return string(data), err == nil
}
