package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/text"
)

// Error is an error response of the server.
type Error struct {
	Status        int           `json:"-"`
	Type          string        `json:"type"`
	Code          string        `json:"code"` // "" if the response is not from Parley
	Message       string        `json:"message"`
	Param         string        `json:"param"`
	Candidates    []string      `json:"candidates"`
	Violations    []Violation   `json:"violations"`
	AvailableKeys []string      `json:"available_keys"`
	RequiredScope string        `json:"required_scope"`
	Standing      string        `json:"status"` // the status of the already decided approval, or of the rejected file
	Turn          *BusyTurn     `json:"turn"`
	RequestID     string        `json:"-"`
	RetryAfter    time.Duration `json:"-"`
}

// Violation is one fault of a request.
type Violation struct {
	Param      string `json:"param"`
	Rule       string `json:"rule"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

// BusyTurn is the running turn that a message conflicts with.
type BusyTurn struct {
	TurnID  string `json:"turn_id"`
	Status  string `json:"status"`
	LastSeq int64  `json:"last_seq"`
}

// Error returns the message, the status and the code.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (%s)", e.Message, strings.TrimSpace(strconv.Itoa(e.Status)+" "+e.Code))
}

// Unreachable means that no response arrived: the server or the network is down.
type Unreachable struct {
	URL string
	Err error
	// Sent reports whether the server may have received the request.
	Sent bool
}

// Error returns the address and the reason.
func (e *Unreachable) Error() string { return "no answer from " + e.URL + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Unreachable) Unwrap() error { return e.Err }

// Broken means that a stream ended before its done frame and could not be resumed.
type Broken struct {
	Session string // "" if the stream broke before its first frame
	LastID  string
	Err     error
}

// Error returns the reason.
func (e *Broken) Error() string { return "the stream broke: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Broken) Unwrap() error { return e.Err }

// unreachableError returns the error of a request without a complete response. sent means that
// there was a connection to send it on.
func (c *Client) unreachableError(req *http.Request, err error, sent bool) error {
	if ctx := req.Context(); ctx.Err() != nil && !errors.Is(context.Cause(ctx), errQuiet) {
		return context.Cause(ctx)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the method and the address
	}
	return &Unreachable{URL: c.URL(), Err: err, Sent: sent}
}

// foreignError returns the error of a response that is not from Parley but from a proxy, for
// instance.
func foreignError(at *url.URL, status int, answer []byte) *Error {
	shown := *at
	shown.RawQuery = "" // with the query, a signed address grants access
	return &Error{Status: status, Message: "The response from " + shown.Redacted() + " is not from Parley: " + excerptOf(answer)}
}

// decodeFailure decodes the error envelope. A response without one is a foreignError.
func decodeFailure(res *http.Response, body []byte) *Error {
	var envelope struct {
		Error     *Error `json:"error"`
		RequestID string `json:"request_id"`
	}
	e := &Error{}
	if to := res.Header.Get("Location"); to != "" && res.StatusCode/100 == 3 {
		e.Message = "The server has another address: it redirects to " + to + "."
	} else if json.Unmarshal(body, &envelope) == nil && envelope.Error != nil && envelope.Error.Code != "" {
		e = envelope.Error
	} else {
		e = foreignError(res.Request.URL, res.StatusCode, body)
	}
	e.Status = res.StatusCode
	e.RequestID = envelope.RequestID
	if e.RequestID == "" {
		e.RequestID = res.Header.Get("X-Request-Id")
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 && n < 86400 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

func excerptOf(body []byte) string {
	s := string(body[:min(len(body), 200)])
	if s = strings.Join(strings.Fields(s), " "); s == "" {
		return "nothing"
	}
	return text.Truncate(s, 120)
}

// canRetry reports whether a retry can succeed.
func canRetry(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
			http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return true
}
