package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/client"
)

const session = "0192f0aa-0000-7000-8000-000000000001"

// wire is one turn as a server sends it, and how each connection to it ends.
type wire struct {
	frames []string // "event\ndata", ids are 10, 11, 12 …
	cuts   []int    // bytes that connection i lets through; the last one is whole
	replay bool     // ignores the cursor, as a server may on an idempotent repeat

	mu    sync.Mutex
	n     int
	keys  map[string]bool
	calls []string // "POST 12"
}

func (s *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	i := s.n
	s.n++
	if r.Method == http.MethodPost {
		s.keys[r.Header.Get("Idempotency-Key")] = true
	}
	cursor := r.Header.Get("Last-Event-ID")
	s.calls = append(s.calls, r.Method+" "+cursor)
	s.mu.Unlock()

	from, _ := strconv.Atoi(cursor)
	if s.replay {
		from = 0
	}
	var b strings.Builder
	if from > 0 || r.Method == http.MethodGet {
		fmt.Fprintf(&b, "retry: 1\nevent: open\nid: %d\ndata: {\"session_id\":%q,\"from_seq\":%d}\n\n", from, session, from)
	}
	for j, f := range s.frames {
		if id := 10 + j; id > from {
			kind, data, _ := strings.Cut(f, "\n")
			fmt.Fprintf(&b, ": ping\nevent: %s\nid: %d\nretry: 1\ndata: %s\n\n", kind, id, data)
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if i < len(s.cuts) {
		w.Write([]byte(b.String()[:min(s.cuts[i], b.Len())]))
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write([]byte(b.String()))
}

func turn(texts int) []string {
	frames := []string{"open\n{\"session_id\":\"" + session + "\"}"}
	for i := range texts {
		frames = append(frames, fmt.Sprintf("text\n{\"v\":1,\"text\":\"%d \"}", i))
	}
	return append(frames, "error\n{\"v\":1,\"code\":\"model_error\",\"message\":\"m\",\"recoverable\":true}",
		"done\n{\"v\":1,\"session_id\":\""+session+"\"}")
}

func TestSendSeesEveryFrameOnceWhateverBreaks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &wire{
			frames: turn(rapid.IntRange(0, 8).Draw(t, "texts")),
			cuts:   rapid.SliceOfN(rapid.IntRange(0, 700), 0, 5).Draw(t, "cuts"),
			replay: rapid.Bool().Draw(t, "replay"),
			keys:   map[string]bool{},
		}
		srv := httptest.NewServer(s)
		defer srv.Close()
		c := open(t, srv.URL)
		defer c.Close()

		var got []string
		for f, err := range c.Send(context.Background(), client.Message{Command: "hi"}) {
			if err != nil {
				t.Fatalf("after %d frames: %v", len(got), err)
			}
			got = append(got, f.ID+" "+string(f.Event))
		}
		var want []string
		for i, f := range s.frames {
			kind, _, _ := strings.Cut(f, "\n")
			want = append(want, fmt.Sprintf("%d %s", 10+i, kind))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("frames\n%v\nwant\n%v", got, want)
		}
		if len(s.keys) != 1 || s.keys[""] {
			t.Fatalf("one message was sent with %d idempotency keys", len(s.keys))
		}
	})
}

func TestFollowTakesUpAfterItsCursor(t *testing.T) {
	t.Parallel()
	s := &wire{frames: turn(3), cuts: []int{200}, keys: map[string]bool{}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	c := open(t, srv.URL)
	defer c.Close()

	var text string
	for f, err := range c.Follow(t.Context(), session, "11") {
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := f.Body(); f.Event == client.KindText {
			text += body.(client.Text).Text
		}
	}
	if text != "1 2 " {
		t.Errorf("text = %q", text)
	}
	if s.calls[0] != "GET 11" {
		t.Errorf("calls: %v", s.calls)
	}
}

func TestSessionGoneReachesTheCaller(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		id := r.Header.Get("Last-Event-ID")
		fmt.Fprintf(w, "event: open\nid: %s\ndata: {}\n\nevent: error\nid: %s\ndata: {\"code\":\"session_gone\"}\n\nevent: done\nid: "+
			"%s\ndata: {}\n\n", id, id, id)
	}))
	defer srv.Close()
	c := open(t, srv.URL)
	defer c.Close()

	var kinds []string
	for f, err := range c.Follow(t.Context(), session, "12") {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(f.Event))
	}
	if fmt.Sprint(kinds) != "[open error done]" {
		t.Errorf("frames: %v", kinds)
	}
}

func TestSendGivesUpAfterItsTries(t *testing.T) {
	t.Parallel()
	s := &wire{frames: turn(3), cuts: []int{250, 0, 0, 0, 0, 0, 0, 0}, keys: map[string]bool{}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	var retries []client.Retry
	c, err := client.New(client.Options{URL: srv.URL, Workspace: "w", Key: "k", Wait: time.Millisecond, Retrying: func(r client.Retry) {
		retries = append(retries, r)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	var last error
	for _, err := range c.Send(t.Context(), client.Message{Command: "hi"}) {
		last = err
	}
	broken, ok := errors.AsType[*client.Broken](last)
	if !ok || broken.Session != session || broken.LastID == "" {
		t.Fatalf("error %#v", last)
	}
	if len(retries) != 5 || s.n != 6 {
		t.Errorf("%d retries reported, %d connections", len(retries), s.n)
	}
}

func TestRefusalsAreFinalAndTyped(t *testing.T) {
	t.Parallel()
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"error":{"type":"conflict_error","code":"TURN_IN_PROGRESS","message":"Busy.","turn":{"turn_id":"t",`+
			`"last_seq":9}},"request_id":"req_1"}`)
	}))
	defer srv.Close()
	c := open(t, srv.URL)
	defer c.Close()

	for _, err := range c.Send(t.Context(), client.Message{Command: "hi"}) {
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Status != 409 || e.Code != "TURN_IN_PROGRESS" || e.Turn.LastSeq != 9 || e.RequestID != "req_1" ||
			e.RetryAfter.Seconds() != 7 {
			t.Errorf("error %#v", err)
		}
	}
	if _, err := c.Cancel(t.Context(), session); err == nil {
		t.Error("Cancel hid the refusal")
	}
	if calls != 2 {
		t.Errorf("%d calls for two refusals", calls)
	}
}

// TestAKeyThatCannotBeSentIsRefused: the client rejects it before sending anything, and the error
// does not contain it.
func TestAKeyThatCannotBeSentIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"prl_a\nb", "prl_a b", "\ufeffprl_a", "prl_a\x00"} {
		if _, err := client.New(client.Options{URL: "http://server.example", Key: key}); err == nil || strings.Contains(err.Error(), "prl_a") {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestWhatWasNeverSentIsNotTriedAgain: an error before any connection is not retried.
func TestWhatWasNeverSentIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := &wire{frames: turn(1), keys: map[string]bool{}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	c, err := client.New(client.Options{URL: srv.URL, Workspace: "w", Key: "k", Retrying: func(r client.Retry) {
		t.Errorf("tried again: %v", r.Err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	unsent := client.Message{Command: "hi", IdempotencyKey: "a\nb"} // not a valid header value
	var failed error
	for _, err := range c.Send(t.Context(), unsent) {
		failed = err
	}
	if e, ok := errors.AsType[*client.Unreachable](failed); !ok || e.Sent || len(s.calls) > 0 {
		t.Errorf("%v after %v", failed, s.calls)
	}
	if _, err := c.Ask(t.Context(), unsent); err == nil {
		t.Error("it was sent")
	}
}

func TestNothingIsTriedAgainWhereNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c, err := client.New(client.Options{URL: "http://" + l.Addr().String(), Workspace: "w", Key: "k", Wait: time.Millisecond,
		Retrying: func(r client.Retry) {
			t.Errorf("retry %v", r)
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Ask(t.Context(), client.Message{Command: "hi"})
	if e, ok := errors.AsType[*client.Unreachable](err); !ok || e.Sent {
		t.Errorf("error %v", err)
	}
}

func TestAskRepeatsTheSameMessage(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // an aborted connection does not order its handler before the next one
	var keys []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"success":true,"output":"yes","session_id":"s","error":null,"extra":1}`)
	}))
	defer srv.Close()
	c := open(t, srv.URL)
	defer c.Close()

	a, err := c.Ask(t.Context(), client.Message{Command: "hi"})
	if err != nil || *a.Output != "yes" || !strings.Contains(string(a.Raw), `"extra":1`) {
		t.Fatalf("%+v, %v", a, err)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("keys %v", keys)
	}
}

// failer is implemented by testing.T and rapid.T.
type failer interface{ Fatal(...any) }

func open(t failer, url string) *client.Client {
	c, err := client.New(client.Options{URL: url, Workspace: "w", Key: "k", Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
