package sse_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/testing/wait"
)

// sink is a response writer that stores everything and supports deadlines.
type sink struct {
	mu      sync.Mutex
	head    http.Header
	body    strings.Builder
	flushes int
	wrote   chan struct{}
	err     error
}

func newSink() *sink { return &sink{head: http.Header{}, wrote: make(chan struct{}, 100)} }

func (s *sink) Header() http.Header              { return s.head }
func (s *sink) WriteHeader(int)                  {}
func (s *sink) SetWriteDeadline(time.Time) error { return nil }
func (s *sink) FlushError() error                { s.flushes++; return nil }
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.wrote <- struct{}{}
	return s.body.Write(p)
}
func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.String()
}

func TestFrameOnTheWire(t *testing.T) {
	t.Parallel()
	s := newSink()
	w := sse.Open(s, sse.Options{})
	defer w.Close()
	w.Retry(2 * time.Second)
	if err := w.Event("open", 41, []byte(`{"session_id":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Event("text", 42, []byte(`{"v":1,"text":"é"}`)); err != nil {
		t.Fatal(err)
	}
	if s.String() != "" {
		t.Fatal("written before Flush")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "retry: 2000\nevent: open\nid: 41\ndata: {\"session_id\":\"x\"}\n\n" +
		"event: text\nid: 42\ndata: {\"v\":1,\"text\":\"é\"}\n\n"
	if got := s.String(); got != want {
		t.Errorf("wire\n%q, want\n%q", got, want)
	}
	if s.flushes != 1 {
		t.Errorf("%d flushes for one batch", s.flushes)
	}
	for name, want := range map[string]string{
		"Content-Type":      "text/event-stream; charset=utf-8",
		"Cache-Control":     "no-store, no-transform",
		"X-Accel-Buffering": "no",
	} {
		if got := s.head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestWriterRefusesWhatItCannotCarry(t *testing.T) {
	t.Parallel()
	for _, f := range [][2]string{{"", "x"}, {"a\nb", "x"}, {"a\rb", "x"}, {"text", "a\rb"}, {"text", "a\r\n"}, {"text", "\xff"},
		{"\xff", "x"}} {
		s := newSink()
		w := sse.Open(s, sse.Options{})
		if err := w.Event(f[0], 1, []byte(f[1])); !errors.Is(err, sse.ErrFrame) {
			t.Errorf("%q: %v", f, err)
		}
		if err := w.Flush(); err != nil || s.String() != "" {
			t.Errorf("%q: wrote %q, %v", f, s.String(), err)
		}
		w.Close()
	}
}

func TestKeepaliveIsOneLine(t *testing.T) {
	t.Parallel()
	s := newSink()
	w := sse.Open(s, sse.Options{Keepalive: time.Millisecond})
	wait.Receive(t, "a write", s.wrote)
	wait.Receive(t, "a write", s.wrote)
	w.Close()
	if got := s.String(); !strings.HasPrefix(got, ": ping\n: ping\n") || strings.Contains(got, "\n\n") {
		t.Errorf("keep-alives %q", got)
	}
	before := s.String()
	if err := w.Event("text", 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err == nil || s.String() != before {
		t.Errorf("written after Close: %v", err)
	}
}

func TestKeepaliveTellsOfABrokenConnection(t *testing.T) {
	t.Parallel()
	s := newSink()
	s.err = errors.New("gone")
	broken := make(chan error, 1)
	w := sse.Open(s, sse.Options{Keepalive: time.Millisecond, Broken: func(err error) { broken <- err }})
	defer w.Close()
	if err := wait.Receive(t, "the broken write", broken); !errors.Is(err, s.err) {
		t.Errorf("%v", err)
	}
	if err := w.Event("text", 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); !errors.Is(err, s.err) {
		t.Errorf("flush after a failure: %v", err)
	}
}

// A client that does not read ends in a deadline, not in a handler that hangs.
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	result := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w := sse.Open(rw, sse.Options{WriteTimeout: 100 * time.Millisecond})
		defer w.Close()
		data := []byte(strings.Repeat("x", 32<<10))
		for i := int64(1); ; i++ {
			if err := errors.Join(w.Event("text", i, data), w.Flush()); err != nil {
				result <- err
				return
			}
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := wait.Receive(t, "a result", result); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}

// Frames are sent when they are flushed, not when the response ends.
func TestFramesArriveOneByOne(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w := sse.Open(rw, sse.Options{})
		defer w.Close()
		for i := int64(1); i <= 3; i++ {
			if err := errors.Join(w.Event("text", i, fmt.Appendf(nil, "%d", i)), w.Flush()); err != nil {
				return
			}
			<-next
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := sse.NewReader(resp.Body)
	for i := 1; i <= 3; i++ {
		f, err := r.Next()
		if err != nil || string(f.Data) != fmt.Sprint(i) {
			t.Fatalf("frame %d: %+v, %v", i, f, err)
		}
		next <- struct{}{}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzWriter(f *testing.F) {
	for _, data := range []string{"", " ", "\n", "\n\n", "a\nb", "\r", "a\r\nb", "\x00", "\u2028", "\uFEFF", ": x", "data: x",
		`{"v":1}`, "\xff"} {
		f.Add("text", data, int64(1))
	}
	f.Add(" text", "x", int64(-1))
	f.Fuzz(func(t *testing.T, event, data string, id int64) {
		s := newSink()
		w := sse.Open(s, sse.Options{})
		defer w.Close()
		err := w.Event(event, id, []byte(data))
		if flushed := w.Flush(); flushed != nil {
			t.Fatal(flushed)
		}
		frames, _ := parse(s.String())
		if !carried(event, data) {
			if !errors.Is(err, sse.ErrFrame) || len(frames) != 0 {
				t.Fatalf("accepted a frame that cannot be sent unchanged: %v, %q", err, s.String())
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := parsed{event, fmt.Sprint(id), data}
		if len(frames) != 1 || frames[0] != want {
			t.Fatalf("%q is %+v, want %+v", s.String(), frames, want)
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	s := discard{http.Header{}}
	w := sse.Open(s, sse.Options{})
	defer w.Close()
	data := []byte(`{"v":1,"text":"a few words of an answer "}`)
	b.ReportAllocs()
	for i := range b.N {
		if err := w.Event("text", int64(i), data); err != nil {
			b.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header            { return d.h }
func (discard) WriteHeader(int)                  {}
func (discard) SetWriteDeadline(time.Time) error { return nil }
func (discard) FlushError() error                { return nil }
func (discard) Write(p []byte) (int, error)      { return len(p), nil }

func BenchmarkReader(b *testing.B) {
	frame := "event: text\nid: 1234567\ndata: {\"v\":1,\"text\":\"a few words of an answer \"}\n\n"
	r := sse.NewReader(bufio.NewReader(&endless{frame: frame}))
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

type endless struct {
	frame string
	at    int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := copy(p[n:], e.frame[e.at:])
		n += c
		e.at = (e.at + c) % len(e.frame)
	}
	return n, nil
}

func TestFramesWithoutAName(t *testing.T) {
	t.Parallel()
	s := newSink()
	w := sse.Open(s, sse.Options{})
	defer w.Close()
	for _, data := range []string{"a\rb", "\xff"} {
		if err := w.Message(1, []byte(data)); !errors.Is(err, sse.ErrFrame) {
			t.Errorf("%q: %v", data, err)
		}
	}
	w.Retry(time.Second)
	if err := errors.Join(w.Message(7, []byte("é\nb")), w.Message(0, []byte("{}")), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != "retry: 1000\nid: 7\ndata: é\ndata: b\n\ndata: {}\n\n" {
		t.Errorf("wire %q", got)
	}
}
