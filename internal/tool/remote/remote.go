// Package remote has what calls of tools on other servers share: their hosts, their time, their
// repetition, and the record of their outcomes.
package remote

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

// ErrTime ends a call that takes too long.
const ErrTime = tool.Refusal("the time of the call is over")

// UnknownOutcome begins the result of a call that may have had an effect.
const UnknownOutcome = "interrupted, outcome unknown: "

// MaxReason is the length of a recorded failure, in characters.
const MaxReason = 2000

// retryPause is the pause before a repetition.
const retryPause = 200 * time.Millisecond

// AwaitRetry waits before a repetition, and reports whether there is time for it.
func AwaitRetry(ctx context.Context) bool {
	wait := time.NewTimer(retryPause)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

// HostOf returns the host of the address of an entry, with its port.
func HostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", tool.Refusal("The address of the tool cannot be parsed.")
	}
	return HostPort(u), nil
}

// HostPort returns the host of a URL, with its port.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Send sends a request of a call on an open way.
type Send = func(call string, req *http.Request) (*http.Response, error)

// Registry stores the state of entries.
type Registry interface {
	// NoteUse records the outcome of a use; reason is "" after a success.
	NoteUse(ctx context.Context, server toolset.Server, reason string)
}

// Uses records the outcomes of the calls of one entry in a run.
type Uses struct {
	Registry Registry // nil: none is recorded
	Server   toolset.Server

	noted bool // a success is on record
}

// Note records the outcome of a call: each failure, and the first success after it. reason is "" after
// a success.
func (u *Uses) Note(ctx context.Context, reason string) {
	if u.Registry != nil && (reason != "" || !u.noted) {
		u.noted = reason == ""
		u.Registry.NoteUse(ctx, u.Server, text.Truncate(reason, MaxReason))
	}
}
