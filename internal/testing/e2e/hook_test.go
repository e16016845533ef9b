package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// hook is a receiver of callbacks that verifies requests with the library of Standard Webhooks.
// Each path sends its configured responses, and then 204.
type hook struct {
	*httptest.Server
	t      *testing.T
	verify *standardwebhooks.Webhook

	mu      sync.Mutex
	answers map[string][]http.HandlerFunc // the next responses, by path
	got     map[string][]report
}

// report is one request of a callback.
type report struct {
	id, body string

	Type string
	Data struct {
		Success   bool
		SessionID string `json:"session_id"`
		Seq       int64
		Error     *string
	}
}

// newHook makes a receiver for a world's workspace.
func newHook(t *testing.T, w *world) *hook {
	t.Helper()
	h := &hook{t: t, answers: make(map[string][]http.HandlerFunc), got: make(map[string][]report)}
	var err error
	if h.verify, err = standardwebhooks.NewWebhook(w.parley(t, "callbacks", "secret", "--workspace", "w")); err != nil {
		t.Fatal(err)
	}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// ServeHTTP implements http.Handler.
func (h *hook) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	rep := report{id: r.Header.Get("webhook-id"), body: string(body)}
	if err == nil {
		err = h.verify.Verify(body, r.Header)
	}
	if err == nil {
		err = json.Unmarshal(body, &rep)
	}
	if err != nil {
		h.t.Errorf("%s: %s: %v", r.URL, body, err)
	}
	h.mu.Lock()
	h.got[r.URL.Path] = append(h.got[r.URL.Path], rep)
	answer := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }
	if next := h.answers[r.URL.Path]; len(next) > 0 {
		answer, h.answers[r.URL.Path] = next[0], next[1:]
	}
	h.mu.Unlock()
	answer(rw, r)
}

// once sets the handler of the next request to a path.
func (h *hook) once(path string, answer http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[path] = append(h.answers[path], answer)
}

// reports returns the requests to a path.
func (h *hook) reports(path string) []report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]report(nil), h.got[path]...)
}

// same checks that a path received one report so many times.
func (h *hook) same(t *testing.T, path string, times int) report {
	t.Helper()
	got := h.reports(path)
	if len(got) < 1 || times > 0 && len(got) != times {
		t.Fatalf("%s received %d reports, want %d", path, len(got), times)
	}
	for _, r := range got {
		if r.id == "" || r.id != got[0].id || r.body != got[0].body {
			t.Errorf("%s received %s %s, and then %s %s", path, got[0].id, got[0].body, r.id, r.body)
		}
	}
	return got[0]
}

// hurry makes the pending attempt at a callback due now.
func (w *world) hurry(t *testing.T, id string) {
	t.Helper()
	wait.For(t, "the next attempt is scheduled", func() bool {
		tag, err := w.pool.Exec(t.Context(),
			`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state IN ('scheduled', 'available') AND kind = 'callback'
			AND args->>'delivery_id' = (SELECT id::text FROM callback_deliveries WHERE callback_id = $1)`, id)
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected() == 1
	})
}

// TestReceiversInTrouble lets the first attempt fail in every way. The second delivers the same
// report; after a 410 there is no second attempt.
func TestReceiversInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newHook(t, w)
	down := httptest.NewUnstartedServer(h)
	t.Cleanup(down.Close)
	away := down.Listener.Addr().String()
	_ = down.Listener.Close()
	s := w.serve(t, []string{"PARLEY_EGRESS_ALLOW=" + h.URL + ",http://" + away})
	h.once("/500", status(http.StatusInternalServerError))
	h.once("/302", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, h.URL+"/trap", http.StatusFound) })
	h.once("/410", status(http.StatusGone))
	h.once("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for path, failure := range map[string]string{"/500": "bad_status", "/302": "redirected", "/410": "gone", "/slow": "timed_out",
		"/down": "connection_failed"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			url, attempts := h.URL+path, 2
			if path == "/down" {
				url, attempts = "http://"+away+path, 1
			}
			id := w.callback(t, s, url)
			wait.For(t, "the first attempt fails", func() bool { return fmt.Sprint(w.attempts(t, s, id)) == "["+failure+"]" })
			if path == "/410" {
				r, _ := http.NewRequest(http.MethodGet, s.url+"/api/v1/workspaces/w/callbacks/"+id, nil)
				var got struct {
					Data struct {
						Status   string
						Disabled bool
					}
				}
				if w.call(t, r, http.StatusOK, &got); got.Data.Status != "failed" || !got.Data.Disabled {
					t.Errorf("%+v", got)
				}
				wait.For(t, "the job is over", func() (over bool) {
					if err := w.pool.QueryRow(t.Context(), `SELECT finalized_at IS NOT NULL FROM river_job WHERE kind = 'callback'
						AND args->>'delivery_id' = (SELECT id::text FROM callback_deliveries WHERE callback_id = $1)`, id).Scan(&over); err != nil {
						t.Fatal(err)
					}
					return over
				})
				h.same(t, path, 1)
				return
			}
			if path == "/down" {
				l, err := net.Listen("tcp", away)
				if err != nil {
					t.Fatal(err)
				}
				down.Listener = l
				down.Start()
			}
			w.hurry(t, id)
			wait.For(t, "the second attempt delivers", func() bool { return fmt.Sprint(w.attempts(t, s, id)) == "["+failure+" delivered]" })
			h.same(t, path, attempts)
		})
	}
	t.Cleanup(func() {
		if n := len(h.reports("/trap")); n > 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	})
}

func status(code int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
}

// TestReportSurvivesItsServer kills a server right after the done of its turn is stored, and
// another server, which runs no turns, right after it canceled one.
func TestReportSurvivesItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newHook(t, w)
	env := []string{"PARLEY_EGRESS_ALLOW=" + h.URL}
	idle := w.serve(t, env, "--no-workers")
	canceled := w.callback(t, idle, h.URL+"/canceled")
	var session string
	if err := w.pool.QueryRow(t.Context(), `SELECT session_id FROM turns`).Scan(&session); err != nil {
		t.Fatal(err)
	}
	if res, body := w.do(t, idle.post("/api/v1/workspaces/w/sessions/"+session+"/cancel", nil)); res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", res.Status, body)
	}
	completed := w.callback(t, idle, h.URL+"/completed")
	idle.kill()

	first := w.serve(t, env)
	var seq int64
	wait.For(t, "the turn is done", func() bool {
		return w.pool.QueryRow(t.Context(), `SELECT e.seq FROM events e JOIN callbacks c ON c.turn_id = e.turn_id
			WHERE e.kind = 'done' AND c.id = $1`, completed).Scan(&seq) == nil
	})
	first.kill()
	// A running attempt counts as lost after a minute: move its time forward.
	if _, err := w.pool.Exec(t.Context(),
		`UPDATE callback_deliveries SET next_at = now() - interval '10 seconds' WHERE status = 'pending'`); err != nil {
		t.Fatal(err)
	}
	second := w.serve(t, env)
	for id, want := range map[string]string{canceled: "turn.canceled", completed: "turn.completed"} {
		wait.For(t, want+" is delivered", func() bool { return fmt.Sprint(w.attempts(t, second, id)) == "[delivered]" })
	}
	// The first server may have sent its report and died before it recorded that.
	if r := h.same(t, "/completed", 0); r.Type != "turn.completed" || !r.Data.Success || r.Data.Seq != seq {
		t.Errorf("%s, want seq %d", r.body, seq)
	}
	if r := h.same(t, "/canceled", 0); r.Type != "turn.canceled" || *r.Data.Error != "canceled" || r.Data.SessionID != session {
		t.Errorf("%s", r.body)
	}
}

// TestRolledBackTurnReportsNothing makes the commit of the transaction that ends a turn fail,
// twice. The callback reports the end that was committed, once.
func TestRolledBackTurnReportsNothing(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	w := newWorld(t)
	h := newHook(t, w)
	s := w.serve(t, []string{"PARLEY_EGRESS_ALLOW=" + h.URL})
	_, err := w.pool.Exec(t.Context(), `CREATE SEQUENCE commits;
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('commits') <= 2 THEN RAISE EXCEPTION 'not yet' USING ERRCODE = 'serialization_failure'; END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON callback_deliveries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if err != nil {
		t.Fatal(err)
	}
	id := w.callback(t, s, h.URL+"/hook")
	wait.For(t, "the callback is delivered", func() bool { return fmt.Sprint(w.attempts(t, s, id)) == "[delivered]" })
	r := h.same(t, "/hook", 1)
	var tried, dones, seq int64
	if err := w.pool.QueryRow(t.Context(),
		`SELECT (SELECT last_value FROM commits), count(*), max(seq) FROM events WHERE kind = 'done'`).Scan(&tried, &dones, &seq); err != nil {
		t.Fatal(err)
	}
	if tried != 3 || dones != 1 || r.Data.Seq != seq || !r.Data.Success {
		t.Errorf("after %d commits there are %d ends, the last is %d, but %s was reported", tried, dones, seq, r.body)
	}
	// A rejected message has nothing to report either.
	session, _ := w.start(t, s, "@wait 1m")
	res, body := w.do(t, w.messages(s, map[string]any{"command": "too early", "session_id": session, "callback": h.URL + "/refused"}))
	var callbacks int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM callbacks`).Scan(&callbacks); err != nil ||
		res.StatusCode != http.StatusConflict || callbacks != 1 {
		t.Errorf("%s %s, and %d callbacks, %v", res.Status, body, callbacks, err)
	}
	if n := len(h.reports("/refused")); n > 0 {
		t.Errorf("it was reported %d times", n)
	}
}
