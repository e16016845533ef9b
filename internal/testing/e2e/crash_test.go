package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// expected returns the text of `@text n deltas of 12 bytes`, as the guide writes it without a
// fault.
func (w *world) expected(t *testing.T, s *server, n int) string {
	t.Helper()
	session, _ := w.start(t, s, fmt.Sprintf("@text %d deltas of 12 bytes", n))
	frames, err := w.follow(t.Context(), session, "", nil, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(frames); len(got) != 12*n {
		t.Fatalf("the undisturbed answer has %d bytes, want %d", len(got), 12*n)
	}
	return text(frames)
}

// agree compares all frames of one reader with the table and the stored answer.
func (w *world) agree(t *testing.T, session string, frames []frame, want string) {
	t.Helper()
	if diff := cmp.Diff(w.table(t, session), frames); diff != "" {
		t.Errorf("the reader's rows differ from the table (-table +reader):\n%.2000s", diff)
	}
	if got := text(frames); got != want {
		t.Errorf("the deltas make a text of %d bytes, want %d; they differ at byte %d", len(got), len(want), differ(got, want))
	}
	if content, status := w.answer(t, session); content != text(frames) || status != "completed" {
		t.Errorf("the stored answer (%s, %d bytes) is not the text of the stream", status, len(content))
	}
}

func differ(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// newPatientWorld is newWorld for a test that holds a call: its servers wait a minute for a lock,
// because another server can take longer to start than the two seconds that they wait otherwise.
func newPatientWorld(t *testing.T) *world {
	t.Helper()
	slow.Test(t, "runs processes")
	u, err := url.Parse(dbtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("lock_timeout", "60000")
	q.Set("statement_timeout", "60000")
	u.RawQuery = q.Encode()
	return newWorldOn(t, u.String())
}

// hold makes the next grep of an agent wait until it is released, so that the time in which another
// server starts does not matter. The world is a patient one.
func (w *world) hold(t *testing.T) (release func()) {
	t.Helper()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.Background()) }
	t.Cleanup(release)
	if _, err := tx.Exec(t.Context(), `LOCK TABLE documents IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	return release
}

func TestKilledMidText(t *testing.T) {
	t.Parallel()
	w := newPatientWorld(t)
	reader := w.serve(t, nil, "--no-workers")
	first := w.serve(t, nil)
	want := w.expected(t, first, 400)

	release := w.hold(t)
	session, _ := w.start(t, reader, "@call grep {\"pattern\":\"x\"}\n@text 400 deltas of 12 bytes at 150/s")
	var killed, resumed time.Time
	texts := 0
	frames, err := w.follow(t.Context(), session, "", func(f frame) {
		switch f.Event {
		case "tool_use":
			w.serve(t, nil)
			release()
		case "text":
			switch texts++; {
			case texts == 80:
				first.kill()
				killed = time.Now()
			case !killed.IsZero() && resumed.IsZero() && time.Since(killed) > 100*time.Millisecond:
				resumed = time.Now()
			}
		}
	}, reader)
	if err != nil {
		t.Fatal(err)
	}
	w.agree(t, session, frames, want)
	t.Logf("the other replica continued %v after kill -9", resumed.Sub(killed).Round(time.Millisecond))
	if nodes := w.nodes(t, session); nodes != 2 {
		t.Errorf("the turn ran on %d nodes, want 2", nodes)
	}
}

func TestKilledMidTool(t *testing.T) {
	t.Parallel()
	w := newPatientWorld(t)
	reader := w.serve(t, nil, "--no-workers")
	first := w.serve(t, nil)
	release := w.hold(t)
	session, _ := w.start(t, reader, "@call write {\"path\":\"x\",\"content\":\"y\"}\n@call grep {\"pattern\":\"y\"}\n@say done")
	uses := 0
	frames, err := w.follow(t.Context(), session, "", func(f frame) {
		if f.Event == "tool_use" {
			if uses++; uses == 2 {
				w.serve(t, nil)
				first.kill()
				release()
			}
		}
	}, reader)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	ids := map[string]int{}
	for _, f := range frames {
		counts[f.Event]++
		if f.Event == "tool_result" {
			ids[f.Data[strings.Index(f.Data, "tool_use_id"):]]++
		}
	}
	if counts["tool_use"] != 2 || counts["tool_result"] != 2 || len(ids) != 2 || counts["done"] != 1 {
		t.Errorf("frames %v, results of %d calls: every call has one beginning and one result", counts, len(ids))
	}
	if !strings.Contains(text(frames), "done") || w.nodes(t, session) != 2 {
		t.Errorf("text %q on %d nodes", text(frames), w.nodes(t, session))
	}
}

// TestFrozenWorkerWritesNothing stops a worker for longer than its lease. The other takes over; the
// first resumes and must not write a row.
func TestFrozenWorkerWritesNothing(t *testing.T) {
	t.Parallel()
	w := newPatientWorld(t)
	env := []string{"PARLEY_TURN_LEASE=2s"}
	reader := w.serve(t, env, "--no-workers")
	first := w.serve(t, env)
	want := w.expected(t, first, 600)

	release := w.hold(t)
	session, _ := w.start(t, reader, "@call grep {\"pattern\":\"x\"}\n@text 600 deltas of 12 bytes at 100/s")
	texts := 0
	var frozen time.Time
	frames, err := w.follow(t.Context(), session, "", func(f frame) {
		switch f.Event {
		case "tool_use":
			w.serve(t, env)
			release()
		case "text":
			switch texts++; {
			case texts == 60:
				first.signal(syscall.SIGSTOP)
				frozen = time.Now()
			case !frozen.IsZero() && time.Since(frozen) > time.Second: // the other replica continues the turn
				first.signal(syscall.SIGCONT)
			}
		}
	}, reader)
	if err != nil {
		t.Fatal(err)
	}
	w.agree(t, session, frames, want)
	if nodes := w.nodes(t, session); nodes != 2 {
		t.Errorf("the turn ran on %d nodes, want 2", nodes)
	}
}

// TestTwoHundredReaders attaches readers at random moments of a long turn, which disconnect and
// resume through both replicas while the listening connections are cut.
func TestTwoHundredReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	servers := []*server{w.serve(t, nil), w.serve(t, nil)}
	// Adjacent deltas may share a row; tool calls have two rows each.
	session, _ := w.start(t, servers[0], "@text 600 deltas of 12 bytes at 300/s\n@call"+strings.Repeat(` grep {"pattern":"x"}`,
		2500)+"\n@say done")

	seen := make([][]frame, 200)
	var wg sync.WaitGroup
	for i := range seen {
		wg.Go(func() {
			select {
			case <-t.Context().Done():
			case <-time.After(rand.N(4 * time.Second)):
			}
			cursor, done := "", false
			for k := i; !done; k++ {
				left := 1 + rand.IntN(1200)
				err := w.stream(t.Context(), w.events(servers[k%2], session, cursor), func(f frame) bool {
					if f.Event == "open" {
						return true
					}
					seen[i], cursor, done = append(seen[i], f), f.ID, f.Event == "done"
					left--
					return left > 0
				})
				if err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
			}
		})
	}
	cut := time.NewTicker(700 * time.Millisecond)
	defer cut.Stop()
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	for cuts := 0; ; {
		select {
		case <-finished:
			want := w.table(t, session)
			if len(want) < 5000 {
				t.Errorf("the turn has only %d rows: too few for this test", len(want))
			}
			for i, got := range seen {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("the rows of reader %d differ from the table (-table +reader):\n%.2000s", i, diff)
				}
			}
			t.Logf("%d rows, read by %d readers; the listeners were cut %d times", len(want), len(seen), cuts)
			return
		case <-cut.C:
			if _, err := w.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = `+
				`'parley listener' AND datname = current_database()`); err != nil {
				t.Fatal(err)
			}
			cuts++
		}
	}
}

// nodes counts the processes that ran a session's turn.
func (w *world) nodes(t *testing.T, session string) (n int) {
	t.Helper()
	err := w.pool.QueryRow(t.Context(), `SELECT count(DISTINCT data->>'node') FROM events WHERE session_id = $1 AND kind = 'started'`,
		session).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
