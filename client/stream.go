package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/sse"
)

// Frame is one event of a stream. Its ID is the cursor for Client.Follow.
type Frame struct {
	Event Kind            `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// Body decodes the data of the frame. It returns nil for kinds that this release does not know.
func (f Frame) Body() (Body, error) {
	decode := decoders[f.Event]
	if decode == nil {
		return nil, nil
	}
	return decode(f.Data)
}

// Follow yields the frames of a session after a cursor, the ID of a frame: first an open frame,
// then the frames of the current turn, and at last a done frame. If the turn has ended, Follow
// yields its missed frames. The cursor "" means the beginning of the running turn, "0" the
// beginning of the session. Follow resumes broken connections as Send does and returns the same
// errors.
func (c *Client) Follow(ctx context.Context, session, after string) iter.Seq2[Frame, error] {
	s := &stream{c: c, session: session, lastID: after,
		attach: func(ctx context.Context, lastID string) (*http.Request, error) {
			return c.requestAfter(ctx, session, lastID)
		}}
	s.seq, _ = strconv.ParseInt(after, 10, 64)
	return s.allFrames(ctx)
}

// requestAfter requests the frames after a cursor, even if the turn has ended.
func (c *Client) requestAfter(ctx context.Context, session, lastID string) (*http.Request, error) {
	u := c.workspaceURL("sessions", url.PathEscape(session), "events")
	if lastID != "" { // without a cursor it would be the whole session
		u.RawQuery = "replay=all"
	}
	req, err := c.newRequest(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream, application/json")
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	return req, nil
}

// quiet is the longest silence of a stream. The server sends a comment every 15 s, so a
// silent connection is dead.
const quiet = 60 * time.Second

var (
	errCut   = errors.New("the connection closed before the answer was complete")
	errQuiet = errors.New("the connection fell silent")
)

// stream reads one answer over several connections.
type stream struct {
	c      *Client
	attach func(ctx context.Context, lastID string) (*http.Request, error)
	pacer

	attached bool // the caller has the open frame
	replayed bool // an earlier request has started the turn
	session  string
	lastID   string
	seq      int64
	last     Kind
}

func (s *stream) allFrames(ctx context.Context) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s.pacer.c = s.c
		for {
			end, err := s.readConnection(ctx, func(f Frame) bool { return yield(f, nil) })
			if end {
				return
			}
			if ctx.Err() != nil {
				yield(Frame{}, context.Cause(ctx))
				return
			}
			if !s.started && !mayHaveArrived(err) {
				yield(Frame{}, err) // the message was not sent
				return
			}
			if stop := s.waitAttempt(ctx, err); stop != nil {
				if ctx.Err() == nil && canRetry(stop) {
					stop = &Broken{Session: s.session, LastID: s.lastID, Err: stop}
				}
				yield(Frame{}, stop)
				return
			}
		}
	}
}

// readConnection reads one connection. end is true after the done frame, and when yield returns
// false.
func (s *stream) readConnection(ctx context.Context, yield func(Frame) bool) (end bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(quiet, func() { cancel(errQuiet) })
	defer watch.Stop()

	req, err := s.attach(ctx, s.lastID)
	if err != nil {
		return false, err
	}
	res, err := s.c.sendRequest(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return false, decodeFailure(res, body)
	}
	s.replayed = s.replayed || !s.started && res.Header.Get("Idempotent-Replayed") == "true"
	s.started = true
	reader := sse.NewReader(&watched{res.Body, watch})
	for {
		raw, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, errCut
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil:
			return false, err
		}
		if raw.Retry > 0 {
			s.base = raw.Retry
		}
		f := Frame{Event: Kind(raw.Event), ID: raw.ID, Data: bytes.Clone(raw.Data)}
		if s.isKnown(f) {
			continue
		}
		s.tries = 0
		if !yield(f) || f.Event == KindDone {
			return true, nil
		}
	}
}

// isKnown records a frame, and reports whether the caller already has it.
func (s *stream) isKnown(f Frame) bool {
	if f.Event == KindOpen {
		var open Open
		if json.Unmarshal(f.Data, &open) == nil {
			s.session = open.SessionID
		}
		if s.attached {
			return true
		}
		s.attached = true
	}
	seq, err := strconv.ParseInt(f.ID, 10, 64)
	if err != nil {
		return false
	}
	if f.Event == KindOpen { // the first; that of a resumed stream carries the cursor
		s.lastID, s.seq, s.last = f.ID, seq, f.Event
		return false
	}
	// Frames that answer a reconnect, such as session_gone, carry the cursor itself.
	if seq < s.seq || seq == s.seq && f.Event != KindDone && (f.Event != KindError || s.last == KindError) && s.lastID != "" {
		return true
	}
	s.lastID, s.seq, s.last = f.ID, seq, f.Event
	return false
}

// watched resets the timer of the silence with every byte.
type watched struct {
	io.Reader
	watch *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.watch.Reset(quiet)
	}
	return n, err
}
