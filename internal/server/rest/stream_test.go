package rest_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestClosingAStreamStopsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	st.close()
	s.Gate.Leave <- struct{}{}
	again := s.open(t, events(id, "?replay=all")).rest()
	if got := names(again); got != "open text tool_use tool_result text usage done" {
		t.Errorf("%s", got)
	}
}

// TestStreamsPassEverything checks the headers that keep caches, proxies and compression from
// holding a frame back.
func TestStreamsPassEverything(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.open(t, call{method: "POST", path: "messages", body: body(t, "@text 2 deltas"), header: []string{"Accept-Encoding",
		"gzip, br"}})
	id := sessionOf(t, first.rest()[0])
	again := events(id, "?replay=all", "Accept-Encoding", "gzip, br")
	for name, st := range map[string]*stream{"POST": first, "GET": s.open(t, again)} {
		h := st.res.Header
		if h.Get("Content-Encoding") != "" || h.Get("Content-Length") != "" || h.Get("Cache-Control") != "no-store, no-transform" ||
			h.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: %v", name, h)
		}
	}
}

// TestRevokedKeyLosesItsStreams checks that the streams of a revoked key close without done, and
// that those of other keys continue.
func TestRevokedKeyLosesItsStreams(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	doomed := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	post := s.open(t, call{method: "POST", path: "messages", body: body(t, held), key: doomed})
	id := sessionOf(t, post.until("open")[0])
	s.Gate.Await(t)
	attach := events(id, "")
	attach.key = doomed
	get := s.open(t, attach)
	get.until("tool_use")
	other := s.open(t, events(id, ""))
	blocked := make(chan reply, 1)
	go func() {
		blocked <- s.get(t, call{method: "POST", path: "messages", body: body(t, held, `"stream":false`), key: doomed})
	}()
	s.Gate.Await(t)

	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, doomed[4:12]); err != nil {
		t.Fatal(err)
	}
	for name, st := range map[string]*stream{"POST": post, "GET": get} {
		if rest := st.rest(); strings.Contains(names(rest), "done") {
			t.Errorf("%s ended with %v", name, rest)
		}
	}
	if r := wait.Receive(t, "the blocking call", blocked); r.status != 401 || r.Error.Code != "INVALID_API_KEY" {
		t.Errorf("blocking: %d %s", r.status, r.text)
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	if got := names(other.rest()); got != "open text tool_use tool_result text usage done" {
		t.Errorf("another key's stream: %s", got)
	}
}

// TestStoppingProcessLeavesStreamsOpenEnded checks that a process that stops closes its streams
// without done, so that their readers resume elsewhere.
func TestStoppingProcessLeavesStreamsOpenEnded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	blocked := make(chan reply, 1)
	go func() {
		blocked <- s.get(t, call{method: "POST", path: "messages", body: body(t, held, `"stream":false`)})
	}()
	s.Gate.Await(t)
	attached := s.open(t, events(id, ""))
	attached.until("tool_use")
	s.Halt()
	for name, st := range map[string]*stream{"POST": st, "GET": attached} {
		if rest := st.rest(); strings.Contains(names(rest), "done") {
			t.Errorf("%s ended with %v", name, rest)
		}
	}
	s.accepted(t, wait.Receive(t, "the blocking call", blocked), "Do not send it again")
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
}

func TestKeepaliveOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Keepalive = 5 * time.Millisecond })
	st := s.say(t, held)
	id := sessionOf(t, st.until("tool_use")[0])
	s.Gate.Await(t)
	res := s.do(t, events(id, ""))
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	var wire []string
	for pings := 0; pings < 2 && lines.Scan(); {
		if wire = append(wire, lines.Text()); lines.Text() == ": ping" {
			pings++
		}
	}
	n := len(wire)
	if n < 3 || wire[0] != "retry: 2000" || wire[1] != "event: open" || !strings.HasPrefix(wire[2], "id: ") ||
		!strings.HasPrefix(wire[3], "data: {") || wire[4] != "" {
		t.Errorf("the first frame: %q", wire)
	}
	for i, line := range wire {
		if line == ": ping" && i+1 < n && wire[i+1] == "" {
			t.Errorf("a blank line after a comment: %q", wire)
		}
	}
	s.Gate.Leave <- struct{}{}
	st.rest()
}

// TestStreamOutlivesTheDatabase checks that a stream waits while the database is away and then
// continues at its position: every frame once, in order.
func TestStreamOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{}, 100)
	s := start(t, func(c *server.Config) {
		c.WriteTimeout, c.Outage = time.Hour, time.Hour
		c.Log = slog.New(heard{c.Log.Handler(), "read a stream: failed", waits})
	})
	slow := s.raw(t, "@text 4000 deltas of 4000 bytes")
	first, err := slow.Next()
	if err != nil {
		t.Fatal(err)
	}
	id := sessionOf(t, frame{data: string(first.Data)})
	s.ended(t, id) // much more than the connection and the memory of the process can buffer
	s.link.cut()
	var seen []int64
	read := make(chan error, 1)
	go func() {
		for {
			f, err := slow.Next()
			if err != nil {
				read <- err
				return
			}
			seen = append(seen, seq(t, frame{id: f.ID}))
			if f.Event == "done" {
				read <- nil
				return
			}
		}
	}()
	wait.Receive(t, "the waiting call", waits)
	s.link.mend()
	if err := wait.Receive(t, "the reader", read); err != nil {
		t.Fatalf("after %d frames: %v", len(seen), err)
	}
	var want []int64
	for evs, err := range s.EventLog.After(t.Context(), eventlog.From{Session: uuid.MustParse(id), Seq: seq(t, frame{id: first.ID})}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range evs {
			if ev.Kind.Public() {
				want = append(want, ev.Seq)
			}
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%d frames, want %d", len(seen), len(want))
	}
}

// raw sends a command over a connection of its own without read-ahead.
func (s *service) raw(t *testing.T, command string) *sse.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	req := s.request(t, call{method: "POST", path: "messages", body: body(t, command)})
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatal(err)
	}
	return sse.NewReader(res.Body)
}

// ended waits until a session's turn has ended.
func (s *service) ended(t *testing.T, id string) {
	t.Helper()
	for evs, err := range s.EventLog.Follow(t.Context(), eventlog.From{Session: uuid.MustParse(id)}) {
		if err != nil {
			t.Fatal(err)
		}
		if evs[len(evs)-1].Kind == event.KindDone {
			return
		}
	}
}

// TestStreamEndsWithoutDoneWhenTheDatabaseStaysAway checks that a stream ends without done if the
// database is away for too long.
func TestStreamEndsWithoutDoneWhenTheDatabaseStaysAway(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Outage = time.Millisecond })
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	s.link.cut()
	if r := s.get(t, events(id, "")); r.status != 503 {
		t.Errorf("attaching: %d", r.status)
	}
	for range cap(s.Gate.Leave) {
		s.Gate.Leave <- struct{}{}
	}
	s.link.mend()
	if rest := st.rest(); len(rest) > 0 && strings.Contains(names(rest), "error") {
		t.Errorf("%v", rest)
	}
}

// TestSlowReaderIsDropped checks that the write deadline drops a reader that does not read, without
// an effect on other readers.
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	dropped := make(chan struct{}, 1)
	s := start(t, func(c *server.Config) {
		c.WriteTimeout = time.Second
		c.Log = slog.New(heard{c.Log.Handler(), "stream closed: client too slow", dropped})
	})
	slow := s.raw(t, "@text 4000 deltas of 4000 bytes")
	first, err := slow.Next() // reads nothing afterwards
	if err != nil {
		t.Fatal(err)
	}
	id := sessionOf(t, frame{data: string(first.Data)})
	if got := names(s.say(t, "@text 10 deltas").rest()); got != "open text usage done" {
		t.Errorf("another stream: %s", got)
	}
	s.ended(t, id) // the turn does not wait for its reader
	wait.Receive(t, "the dropped client", dropped)
	for err == nil {
		var f sse.Frame
		if f, err = slow.Next(); f.Event == "done" {
			t.Error("the slow reader got everything")
		}
	}
	if errors.Is(err, io.EOF) {
		t.Errorf("the end of the slow stream: %v", err)
	}
}

// heard signals when a message is logged.
type heard struct {
	slog.Handler
	msg  string
	then chan struct{}
}

func (h heard) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.msg {
		h.then <- struct{}{}
	}
	return h.Handler.Handle(ctx, r)
}
