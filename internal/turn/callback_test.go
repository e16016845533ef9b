package turn_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// hook is a receiver of callbacks, reached as example.com, that passes each request to the test and
// answers with the status from reply.
type hook struct {
	w     *world
	guard *egress.Guard
	keys  *vault.Keyring
	got   chan *http.Request
	reply chan int
	calls atomic.Int32 // all requests
	given atomic.Int32 // calls that the sender aborted
}

func newHook(t *testing.T, w *world) *hook {
	t.Helper()
	h := &hook{w: w, got: make(chan *http.Request, 100), reply: make(chan int, 100)}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the end of the connection would not be noticed
		if r.URL.Path == "/at-once" {
			return
		}
		h.calls.Add(1)
		h.got <- r
		select {
		case status := <-h.reply:
			rw.WriteHeader(status)
		case <-r.Context().Done():
			h.given.Add(1)
		}
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	var err error
	if h.guard, err = egress.New(egress.Config{Roots: roots, Allow: []string{"example.com:443=" + srv.Listener.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	if h.keys, err = vault.ParseKeys(vault.GenerateKey()); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hook) store() *callback.Store { return callback.NewStore(h.w.pool, h.keys, h.guard) }

// replica starts a process that delivers callbacks.
func (h *hook) replica(t *testing.T, change func(*turn.Config)) *replica {
	return h.w.replica(t, func(c *turn.Config) {
		c.Callbacks = callback.NewStore(c.Pool, h.keys, h.guard)
		if change != nil {
			change(c)
		}
	})
}

// report lets a replica report the end of a turn: an answered turn, or, on a replica without
// workers, a canceled one.
func (h *hook) report(t *testing.T, r *replica, canceled bool) (id, delivery uuid.UUID) {
	t.Helper()
	st, err := r.turns.Start(t.Context(), turn.Request{Workspace: h.w.workspace, Command: "report",
		Callback: &turn.Callback{URL: "https://example.com/hush", Metadata: map[string]string{"hush": "hush"}}})
	if err != nil {
		t.Fatal(err)
	}
	if canceled {
		if _, err := r.turns.Cancel(t.Context(), h.w.workspace.ID, st.Session); err != nil {
			t.Fatal(err)
		}
	}
	read(t, r, st)
	if err := h.w.pool.QueryRow(t.Context(), `SELECT id FROM callback_deliveries WHERE callback_id = $1`,
		st.Callback).Scan(&delivery); err != nil {
		t.Fatal(err)
	}
	return st.Callback, delivery
}

// await waits until the newest delivery of a callback has this status and number of attempts.
func (h *hook) await(t *testing.T, id uuid.UUID, status string, attempts int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		c, err := h.store().Get(t.Context(), h.w.workspace.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		if c.Status == status && len(c.Deliveries[0].Attempts) == attempts {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s with %d attempts: %+v", status, attempts, c)
		}
	}
}

func (h *hook) exec(t *testing.T, sql string) {
	t.Helper()
	tag, err := h.w.pool.Exec(t.Context(), sql)
	if err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("%s: %d rows, %v", sql, tag.RowsAffected(), err)
	}
}

// TestCallbackSleepsBetweenAttempts makes the first attempt fail; the job that waits for the next
// attempt contains only an id.
func TestCallbackSleepsBetweenAttempts(t *testing.T) {
	t.Parallel()
	h := newHook(t, newWorld(t, modeltest.Say("hi")))
	r := h.replica(t, nil)
	id, delivery := h.report(t, r, false)
	h.reply <- 500
	first := wait.Receive(t, "a request at the hook", h.got)
	h.await(t, id, "pending", 1)
	var state, text string
	for state != "scheduled" && state != "available" {
		if err := h.w.pool.QueryRow(t.Context(), `SELECT state, args::text FROM river_job WHERE kind = 'callback'`).Scan(&state,
			&text); err != nil {
			t.Fatal(err)
		}
	}
	if text != `{"delivery_id": "`+delivery.String()+`"}` {
		t.Errorf("the job contains %s", text)
	}
	h.reply <- 200
	h.exec(t, `UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'callback'`)
	second := wait.Receive(t, "a request at the hook", h.got)
	h.await(t, id, "delivered", 2)
	if a, b := first.Header.Get("webhook-id"), second.Header.Get("webhook-id"); a != b || a != delivery.String() {
		t.Errorf("webhook-id %s, then %s", a, b)
	}
}

// TestLostCallbackIsDelivered removes the job in the ways that dying processes do.
func TestLostCallbackIsDelivered(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]string{
		"gone":  `DELETE FROM river_job WHERE kind = 'callback'`,
		"stuck": `UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{4711}' WHERE kind = 'callback'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHook(t, newWorld(t, modeltest.Say("hi")))
			idle := h.replica(t, func(c *turn.Config) { c.Workers = 0 })
			id, _ := h.report(t, idle, true)
			h.exec(t, lose)
			h.exec(t, `UPDATE callback_deliveries SET next_at = now() - interval '1 minute'`)
			h.reply <- 200
			h.replica(t, nil)
			h.await(t, id, "delivered", 1)
			if n := h.calls.Load(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestStoppingProcessHandsCallbacksOver stops a process in the middle of a request.
func TestStoppingProcessHandsCallbacksOver(t *testing.T) {
	t.Parallel()
	h := newHook(t, newWorld(t, modeltest.Say("hi")))
	r := h.replica(t, func(c *turn.Config) { c.Grace = 10 * time.Millisecond })
	id, _ := h.report(t, r, false)
	wait.Receive(t, "a request at the hook", h.got)
	r.stop()
	h.reply <- 200
	h.replica(t, nil)
	h.await(t, id, "delivered", 1)
}

// share is how many attempts a workspace makes at once while no other makes any.
const share = callback.Places * fair.Share / (fair.Share + 1)

// TestSlowReceiversDoNotBlockTurns lets the maximum number of receivers hang, with more deliveries
// queued.
func TestSlowReceiversDoNotBlockTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	h := newHook(t, w)
	r := h.replica(t, func(c *turn.Config) { c.Grace = 10 * time.Millisecond })
	for range share + 10 {
		h.report(t, r, false)
	}
	for range share { // all concurrent attempts
		wait.Receive(t, "a request at the hook", h.got)
	}
	if got := text(read(t, r, w.start(t, r, "hello"))); got != "hi" {
		t.Errorf("text %q", got)
	}
	for deadline := time.Now().Add(10 * time.Second); h.calls.Load()-h.given.Load() > share; {
		if time.Now().After(deadline) { // the receiver notices an aborted call a moment later
			t.Fatalf("%d requests arrived, %d were aborted", h.calls.Load(), h.given.Load())
		}
	}
}

// TestHangingReceiversLeaveRoomForOthers lets three workspaces report to hanging receivers, with
// more reports than places, and then a fourth workspace report to a receiver that answers.
func TestHangingReceiversLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	h := newHook(t, w)
	for _, slug := range []string{"one", "two", "three"} {
		h.due(t, slug, "https://example.com/hush", 25)
	}
	h.replica(t, func(c *turn.Config) { c.Grace = 10 * time.Millisecond })
	for range callback.Places - 2 { // a few places are reserved for others
		select {
		case <-h.got:
		case <-time.After(time.Minute):
			t.Fatal("the receivers were not called")
		}
	}
	began := time.Now()
	id := h.due(t, "four", "https://example.com/at-once", 1)
	for deadline := began.Add(time.Minute); ; {
		var status string
		if err := w.pool.QueryRow(t.Context(), `SELECT status FROM callback_deliveries WHERE callback_id = $1`, id).Scan(&status); err != nil {
			t.Fatal(err)
		}
		if status == "delivered" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not delivered: %s", status)
		}
	}
	t.Logf("the fourth workspace's report was delivered after %s", time.Since(began))
	if n := h.given.Load(); n > 0 {
		t.Errorf("the fourth workspace's report waited until %d others had timed out", n)
	}
}

// due creates a workspace with n overdue reports to a receiver, none of which has a job.
func (h *hook) due(t *testing.T, slug, url string, n int) (id uuid.UUID) {
	t.Helper()
	ws, err := workspace.New(h.w.pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	c := callback.New{ID: uuid.Must(uuid.NewV7()), Workspace: ws.ID, Session: uuid.Must(uuid.NewV7()), Turn: uuid.Must(uuid.NewV7()), URL: url}
	if _, err := h.w.pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, c.Session, c.Workspace); err != nil {
		t.Fatal(err)
	}
	if err := h.store().Put(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err = h.w.pool.Exec(t.Context(), `INSERT INTO callback_deliveries (id, callback_id, workspace_id, type, seq, body, next_at)
		SELECT gen_random_uuid(), $1, $2, 'turn.completed', n, '{}', now() - interval '1 minute' FROM generate_series(1, $3) n`, c.ID,
		c.Workspace, n)
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}
