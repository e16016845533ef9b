package sse_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-server/parley/internal/sse"
)

// read reads every frame of a stream.
func read(r io.Reader) (frames []parsed, lastID string, err error) {
	sr := sse.NewReader(r)
	for {
		f, err := sr.Next()
		if err != nil {
			return frames, sr.LastEventID(), err
		}
		frames = append(frames, parsed{f.Event, f.ID, string(f.Data)})
	}
}

func TestReaderFollowsTheStandard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         []parsed
	}{
		{"one line", "data: x\n\n", []parsed{{"message", "", "x"}}},
		{"all fields", "event: e\nid: 1\ndata: x\n\n", []parsed{{"e", "1", "x"}}},
		{"two lines of data", "data: YHOO\ndata: +2\ndata: 10\n\n", []parsed{{"message", "", "YHOO\n+2\n10"}}},
		{"the standard's second example", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
			[]parsed{{"message", "1", "first event"}, {"message", "", "second event"}, {"message", "", " third event"}}},
		{"the standard's third example", "data\n\ndata\ndata\n\ndata:", []parsed{{"message", "", ""}, {"message", "", "\n"}}},
		{"the standard's fourth example", "data:test\n\ndata: test\n\n", []parsed{{"message", "", "test"}, {"message", "", "test"}}},
		{"CR", "data: x\r\rdata: y\r\r", []parsed{{"message", "", "x"}, {"message", "", "y"}}},
		{"CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", []parsed{{"message", "", "x"}, {"message", "", "y"}}},
		{"byte order mark", "\uFEFFdata: x\n\n", []parsed{{"message", "", "x"}}},
		{"byte order mark twice", "\uFEFF\uFEFFdata: x\n\n", nil},
		{"comments", ": ping\n: ping\ndata: x\n: ping\n\n", []parsed{{"message", "", "x"}}},
		{"an event without data", "event: e\n\ndata: x\n\n", []parsed{{"message", "", "x"}}},
		{"an id with NUL", "id: 1\nid: 2\x00\ndata: x\n\n", []parsed{{"message", "1", "x"}}},
		{"an id stays", "id: 1\ndata: x\n\ndata: y\n\n", []parsed{{"message", "1", "x"}, {"message", "1", "y"}}},
		{"unknown fields", "x: y\nDATA: y\n data: y\ndata: x\n\n", []parsed{{"message", "", "x"}}},
		{"cut off", "data: x\n\ndata: y\n", []parsed{{"message", "", "x"}}},
	} {
		for name, r := range map[string]io.Reader{
			"whole":     strings.NewReader(c.stream),
			"bytes":     iotest.OneByteReader(strings.NewReader(c.stream)),
			"late EOF":  iotest.DataErrReader(strings.NewReader(c.stream)),
			"half time": iotest.HalfReader(strings.NewReader(c.stream)),
		} {
			got, _, err := read(r)
			if err != io.EOF || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %+v, %v, want %+v", c.name, name, got, err, c.want)
			}
		}
		if got, _ := parse(c.stream); !slices.Equal(got, c.want) {
			t.Errorf("%s: the test's own parser returns %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestReaderKeepsTheRetry(t *testing.T) {
	t.Parallel()
	r := sse.NewReader(strings.NewReader("retry: 2000\ndata: x\n\nretry: 5\n\nretry: soon\nretry: -1\ndata: y\n\ndata: z\n\n"))
	for _, want := range []time.Duration{2 * time.Second, 5 * time.Millisecond, 0} {
		f, err := r.Next()
		if err != nil || f.Retry != want {
			t.Errorf("%s: %v, %v, want %v", f.Data, f.Retry, err, want)
		}
	}
}

// A CR ends a line at once: waiting for an LF that may never come would delay the frame.
func TestReaderDoesNotWaitForALineFeed(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	defer pw.Close()
	go func() { _, _ = pw.Write([]byte("data: x\r\r")) }()
	if f, err := sse.NewReader(pr).Next(); err != nil || string(f.Data) != "x" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestReaderIsBounded(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"one line":   "data: " + strings.Repeat("x", 2000),
		"many lines": strings.Repeat("data: 123456789\n", 200),
		"a comment":  ":" + strings.Repeat("x", 20000),
	} {
		r := sse.NewReader(strings.NewReader(stream))
		r.Limit(1000)
		_, err := r.Next()
		if !errors.Is(err, sse.ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := r.Next(); again != err {
			t.Errorf("%s: then %v", name, again)
		}
	}
	r := sse.NewReader(strings.NewReader("data: " + strings.Repeat("x", 1000) + "\n\n"))
	r.Limit(1000)
	if f, err := r.Next(); err != nil || len(f.Data) != 1000 {
		t.Errorf("at the limit: %d bytes, %v", len(f.Data), err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("event: e\r\nid: 1\rdata: x\n\n\ufeffdata"), uint8(1))
	f.Add([]byte("\xef\xbb\xbf\ndata:\n\n: c\nid\x00\n\n"), uint8(3))
	f.Add([]byte("data: x\r"), uint8(7))
	f.Add([]byte("\r\n\r\ndata\n\r\r\n"), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, chunk uint8) {
		want, wantID := parse(string(stream))
		got, gotID, err := read(&chunked{stream, int(chunk)%16 + 1})
		if err != io.EOF || !slices.Equal(got, want) {
			t.Fatalf("%q in chunks of %d: %q, %v, want %q", stream, chunk%16+1, got, err, want)
		}
		if gotID != wantID {
			t.Fatalf("%q: last id %q, want %q", stream, gotID, wantID)
		}
	})
}

type chunked struct {
	data []byte
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.data)
	c.data = c.data[n:]
	return n, nil
}
