package builtin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
)

func TestPaceIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for message, interval := range map[string]time.Duration{
			builtin.Script("").Text(100, 12, 40).String(): 25 * time.Millisecond,
			"@say 100 words":         5 * time.Millisecond,
			"@say 100 words at 10/s": 100 * time.Millisecond,
			"count slowly to 100":    250 * time.Millisecond,
			"count to 100":           50 * time.Millisecond,
			"@text 100 deltas":       0,
			"@bench 100 deltas":      0,
		} {
			s := generate(t.Context(), builtin.New(), user(message))
			if len(s.Deltas) != 100 {
				t.Errorf("%q: %d deltas", message, len(s.Deltas))
				continue
			}
			for i, at := range s.At {
				if want := time.Duration(i) * interval; at != want {
					t.Errorf("%q: delta %d at %v, want %v", message, i, at, want)
					break
				}
			}
		}
		// The pauses and paces add up.
		s := generate(t.Context(), builtin.New(), user("@wait 10s\n@text 2 deltas at 1/s\n@wait 5s\n@text 1 delta"))
		if want := []time.Duration{10 * time.Second, 11 * time.Second, 16 * time.Second}; len(s.At) != 3 || s.At[0] != want[0] ||
			s.At[1] != want[1] || s.At[2] != want[2] {
			t.Errorf("deltas at %v, want %v", s.At, want)
		}
	})
}

func TestLateStreamCatchesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start, n := time.Now(), 0
		for c := range builtin.New().Generate(t.Context(), user("@text 10 deltas at 10/s")) {
			if c.Text == "" {
				continue
			}
			if n++; n == 2 {
				time.Sleep(450 * time.Millisecond) // a reader that is busy until 550 ms
			}
			if want := max(time.Duration(n-1)*100*time.Millisecond, 550*time.Millisecond); n > 2 && time.Since(start) != want {
				t.Errorf("delta %d at %v, want %v", n, time.Since(start), want)
			}
		}
	})
}

func TestReplyEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cause := errors.New("cancelled by somebody")
		for _, message := range []string{"@wait 1h", "@text 1000 deltas at 1/s", "@text 10000000 deltas", "@say before\n@wait 1h"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				time.Sleep(time.Second)
				cancel(cause)
			}()
			n := 0
			var last error
			for c, err := range builtin.New().Generate(ctx, user(message)) {
				if n++; n == 1000 {
					cancel(cause) // at full speed no time passes
				}
				if last != nil {
					t.Errorf("%q continued after its end: %+v", message, c)
				}
				last = err
			}
			if !errors.Is(last, cause) || n > 1001 {
				t.Errorf("%q: %v after %d chunks", message, last, n)
			}
			cancel(nil)
			time.Sleep(time.Second)
		}
	})
}

func TestReaderMayStopAnywhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		check(t, func(r *rapid.T) {
			stop := rapid.IntRange(1, 8).Draw(r, "stop")
			n := 0
			for range builtin.New().Generate(t.Context(), user("@say a b c\n@wait 1s\n@call x y z")) {
				if n++; n == stop {
					break
				}
			}
			if n != min(stop, 7) {
				r.Fatalf("%d chunks", n)
			}
		})
	})
}

func TestTextIsWhatWasAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		check(t, func(r *rapid.T) {
			n, size := rapid.IntRange(0, 300).Draw(r, "n"), rapid.IntRange(1, 30).Draw(r, "size")
			s := generate(t.Context(), builtin.New(), user(builtin.Script("").Text(n, size, 0).String()))
			if s.text() != builtin.Deltas(n, size) || len(s.text()) != n*size || len(s.Deltas) != n {
				r.Fatalf("%d deltas, %q", len(s.Deltas), s.text())
			}
			s = generate(t.Context(), builtin.New(), user(builtin.Script("").Say(n).String()))
			if s.text() != builtin.Words(n) || len(strings.Fields(s.text())) != n {
				r.Fatalf("%q", s.text())
			}
		})
		if s := generate(t.Context(), builtin.New(), user("@unicode")); s.text() != builtin.Unicode {
			t.Errorf("%q", s.text())
		}
	})
}

func TestScriptBuilderWritesWhatIsUnderstood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		script := builtin.Script("").Say(3).Wait(1500*time.Millisecond).Text(2, 5, 0.5).Call("wiki_read", `{"page":"a"}`).Line("@say %s",
			"two\nlines")
		req := user(script.String())
		s := generate(t.Context(), builtin.New(), req)
		if s.text() != builtin.Words(3)+builtin.Deltas(2, 5) || len(s.Calls) != 1 || s.At[4]-s.At[3] != 2*time.Second {
			t.Fatalf("%q: %+v", script, s)
		}
		if s = generate(t.Context(), builtin.New(), answered(req, s, "x")); s.text() != "two lines" || s.Stop != model.StopEnd {
			t.Errorf("%+v", s)
		}
	})
}
