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

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/sse"
)

// Frame is one event of a stream.
type Frame struct {
	Event event.Kind      `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// Body is what the frame says; nil for kinds that this release does not know.
func (f Frame) Body() (event.Body, error) { return event.Decode(f.Event, f.Data) }

// Follow yields the frames of a session's current turn after a cursor; "" means
// from the beginning of the turn, if it runs, and "0" everything that the session has
// ever said. The first is open. Of a turn that has ended the missed tail comes, then done.
func (c *Client) Follow(ctx context.Context, session, after string) iter.Seq2[Frame, error] {
	s := &stream{c: c, session: session, lastID: after,
		attach: func(ctx context.Context, lastID string) (*http.Request, error) { return c.resume(ctx, session, lastID) }}
	s.seq, _ = strconv.ParseInt(after, 10, 64)
	return s.frames(ctx)
}

// resume asks for what comes after a cursor, even if the turn has ended meanwhile.
func (c *Client) resume(ctx context.Context, session, lastID string) (*http.Request, error) {
	u := c.path("sessions", url.PathEscape(session), "events")
	if lastID != "" { // without a cursor it would be the whole session
		u.RawQuery = "replay=all"
	}
	req, err := c.request(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream, application/json")
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	return req, nil
}

// quiet is how long a stream may say nothing. The server comments every 15 s, so
// silence means a connection that died without telling.
const quiet = 60 * time.Second

var (
	errCut   = errors.New("the connection closed before the answer was complete")
	errQuiet = errors.New("the connection fell silent")
)

// stream is one answer over as many connections as it takes.
type stream struct {
	c      *Client
	attach func(ctx context.Context, lastID string) (*http.Request, error)
	pacer

	attached bool // an open frame is old news
	session  string
	lastID   string
	seq      int64
	last     event.Kind
}

func (s *stream) frames(ctx context.Context) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s.pacer.c = s.c
		for {
			end, err := s.connect(ctx, func(f Frame) bool { return yield(f, nil) })
			if end {
				return
			}
			if ctx.Err() != nil {
				yield(Frame{}, context.Cause(ctx))
				return
			}
			if !s.started && !unsure(err) {
				yield(Frame{}, err) // the message never got through
				return
			}
			if stop := s.pause(ctx, err); stop != nil {
				if ctx.Err() == nil && passing(stop) {
					stop = &Broken{Session: s.session, LastID: s.lastID, Err: stop}
				}
				yield(Frame{}, stop)
				return
			}
		}
	}
}

// connect reads one connection. end is true after the done frame, or when yield
// wants no more.
func (s *stream) connect(ctx context.Context, yield func(Frame) bool) (end bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(quiet, func() { cancel(errQuiet) })
	defer watch.Stop()

	req, err := s.attach(ctx, s.lastID)
	if err != nil {
		return false, err
	}
	res, err := s.c.send(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return false, failure(res, body)
	}
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
		f := Frame{Event: event.Kind(raw.Event), ID: raw.ID, Data: bytes.Clone(raw.Data)}
		if s.known(f) {
			continue
		}
		s.tries = 0
		if !yield(f) || f.Event == event.KindDone {
			return true, nil
		}
	}
}

// known notes a frame, and tells whether the reader has it already.
func (s *stream) known(f Frame) bool {
	if f.Event == event.KindOpen {
		var open event.Open
		if json.Unmarshal(f.Data, &open) == nil {
			s.session = open.SessionID.String()
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
	if f.Event == event.KindOpen { // the first; that of a resumed stream carries the cursor
		s.lastID, s.seq, s.last = f.ID, seq, f.Event
		return false
	}
	// Frames that answer a reconnect, such as session_gone, carry the cursor itself.
	if seq < s.seq || seq == s.seq && f.Event != event.KindDone && (f.Event != event.KindError || s.last == event.KindError) && s.lastID != "" {
		return true
	}
	s.lastID, s.seq, s.last = f.ID, seq, f.Event
	return false
}

// watched puts the end of the silence off with every byte.
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
