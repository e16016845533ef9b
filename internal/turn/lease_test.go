package turn_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// journal is a log whose records a test can wait for.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(10 * time.Millisecond) {
		j.mu.Lock()
		found := strings.Contains(j.text.String(), text)
		j.mu.Unlock()
		if found {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log never had %q", text)
		}
	}
}

// TestLeaseIsGivenUpWhileEventsAreNotStored locks the session of a turn while its model is writing
// the answer: leases can be renewed and events cannot be stored. The turn continues once events can
// be stored.
func TestLeaseIsGivenUpWhileEventsAreNotStored(t *testing.T) {
	t.Parallel()
	locked := make(chan struct{})
	var answers atomic.Int32
	script := &modeltest.Script{Answer: func(r modeltest.Request) modeltest.Reply {
		<-locked
		if answers.Add(1) == 1 {
			return modeltest.Reply{Text: []string{"hi", " there"}, Hold: 4}
		}
		return modeltest.Reply{Text: []string{"hi"}}
	}}
	w := newWorld(t, script)
	var said journal
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &said), nil))
	r := w.replica(t, func(c *turn.Config) { c.Lease, c.Log = time.Second, log })
	st := w.start(t, r, "hello")
	for state := ""; state != "running"; {
		if err := w.pool.QueryRow(t.Context(), `SELECT state FROM turns WHERE id = $1`, st.Turn).Scan(&state); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(t.Context()) }()
	if _, err := lock.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, st.Session); err != nil {
		t.Fatal(err)
	}
	close(locked)
	said.await(t, fmt.Sprintf(`"lease given up: the turn's events are not stored" session=%s`, st.Session))
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := text(read(t, r, st)); !strings.HasSuffix(got, "hi") { // the previous attempt may have stored its text just then
		t.Errorf("text %q", got)
	}
}
