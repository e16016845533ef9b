package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestReportArrivesSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret, err := w.store.Secret(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	n := w.register(t, address, map[string]string{"order": "17", "größe": "<L>"})
	d := w.report(t, n.Turn, callback.Completed, 4711)
	if retry, done := w.deliver(t, d); !done || retry != 0 {
		t.Fatalf("retry %s, done %v", retry, done)
	}
	all := w.receiver.all()
	if len(all) != 1 {
		t.Fatalf("%d requests", len(all))
	}
	got := all[0]
	if got.path != "/hook?token=hush" || got.header.Get("Content-Type") != "application/json" || got.header.Get("User-Agent") != "Parley" ||
		got.header.Get("webhook-id") != d.String() {
		t.Errorf("%s %v", got.path, got.header)
	}
	verify(t, secret, got)
	var body struct {
		Type      string
		Timestamp time.Time
		Data      map[string]any
	}
	if err := json.Unmarshal(got.body, &body); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(map[string]any{"success": true, "output": "Hello.", "session_id": "s", "error": nil, "workspace_id": w.workspace,
		"turn_id": n.Turn, "seq": 4711,
		"metadata": map[string]any{"order": "17", "größe": "<L>"}})
	if body.Type != "turn.completed" || time.Since(body.Timestamp) > time.Hour || fmt.Sprint(body.Data) != want {
		t.Errorf("%s\n%v, want\n%s", got.body, body.Data, want)
	}
	c := w.get(t, n.ID)
	if c.Status != "delivered" || c.URL != "https://example.com/hook?…" || len(c.Deliveries) != 1 || !bytes.Equal(c.Deliveries[0].Payload,
		got.body) || c.Deliveries[0].NextAt != nil {
		t.Errorf("%+v", c)
	}
	if a := c.Deliveries[0].Attempts; len(a) != 1 || a[0].N != 1 || *a[0].Status != 204 || a[0].Error != nil ||
		a[0].At.Before(c.Deliveries[0].CreatedAt) {
		t.Errorf("%+v", a)
	}
	if retry, done := w.deliver(t, d); !done || retry != 0 || len(w.receiver.all()) != 1 {
		t.Error("the callback was delivered again")
	}
}

func verify(t *testing.T, secret string, r received) {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := hook.Verify(r.body, r.header); err != nil {
		t.Errorf("the signature is not valid: %v", err)
	}
	if err := hook.Verify(append(r.body, ' '), r.header); err == nil {
		t.Error("the signature is valid for another body")
	}
}

// TestRetriesSendTheSameBytes runs the whole schedule, with data that would differ every time.
func TestRetriesSendTheSameBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret, err := w.store.Secret(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	w.receiver.status(500)
	n := w.register(t, address, nil)
	d := w.report(t, n.Turn, callback.Failed, 1)
	made := 0
	data := func(context.Context, callback.Delivery) ([]byte, error) {
		made++
		return fmt.Appendf(nil, `{"time":%d}`, made), nil
	}
	tries := len(callback.Schedule) + 1
	for i := range tries {
		retry, done, err := w.store.Deliver(t.Context(), d, job, data)
		if err != nil || done != (i == tries-1) {
			t.Fatalf("attempt %d: done %v, %v", i+1, done, err)
		}
		if !done {
			if pause := callback.Schedule[i]; retry < pause*8/10 || retry > pause*12/10 {
				t.Errorf("after attempt %d: %s, want %s", i+1, retry, pause)
			}
			var due float64
			if err := w.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM next_at - clock_timestamp()) FROM callback_deliveries`).Scan(
				&due); err != nil || due > retry.Seconds() || due < retry.Seconds()-60 {
				t.Errorf("after attempt %d it is due in %f s, not in %s: %v", i+1, due, retry, err)
			}
		}
	}
	all := w.receiver.all()
	if made != 1 || len(all) != tries {
		t.Fatalf("made %d times, %d requests", made, len(all))
	}
	for _, r := range all {
		if !bytes.Equal(r.body, all[0].body) || r.header.Get("webhook-id") != d.String() {
			t.Errorf("%s %s", r.header.Get("webhook-id"), r.body)
		}
		verify(t, secret, r)
	}
	c := w.get(t, n.ID)
	if a := c.Deliveries[0].Attempts; c.Status != "failed" || len(a) != tries || *a[3].Status != 500 || *a[3].Error != "bad_status" ||
		a[tries-1].N != int32(tries) {
		t.Errorf("%+v", c)
	}
}

func TestOnlyTheJobThatHasItDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	d := w.report(t, n.Turn, callback.Completed, 1)
	if retry, done, err := w.store.Deliver(t.Context(), d, job+1, answer); err != nil || !done || retry != 0 || len(w.receiver.all()) != 0 {
		t.Errorf("another job: %s %v %v", retry, done, err)
	}
	w.receiver.answers(func(rw http.ResponseWriter, r *http.Request) { // while it answers, another job takes the delivery
		if _, err := w.pool.Exec(r.Context(), `UPDATE callback_deliveries SET job_id = 8`); err != nil {
			t.Error(err)
		}
		rw.WriteHeader(500)
	})
	if retry, done := w.deliver(t, d); !done {
		t.Errorf("the job continues, in %s", retry)
	}
	if c := w.get(t, n.ID); c.Status != "pending" || len(c.Deliveries[0].Attempts) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhatComesOfAnAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const hush = "what the receiver says"
	for _, c := range []struct {
		url    string
		answer http.HandlerFunc
		status int32
		err    string
		done   bool
	}{
		{address, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, hush) }, 200, "", true},
		{address, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, 299, "", true},
		{address, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, 302, "redirected", false},
		{address, func(w http.ResponseWriter, r *http.Request) { http.Error(w, hush, 404) }, 404, "bad_status", false},
		{address, func(w http.ResponseWriter, r *http.Request) { http.Error(w, hush, http.StatusGone) }, 410, "gone", true},
		{address, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, "timed_out", false},
		{address, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "connection_lost", false},
		{address, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(hush, 100)); err != nil {
					return
				}
			}
		}, 200, "", true},
		{"https://closed.example/", nil, 0, "connection_failed", false},
		{"https://listen.invalid/", nil, 0, "not_sent", true},
	} {
		limit := time.Minute
		if c.err == "timed_out" {
			limit = 500 * time.Millisecond
		}
		w.store.Hurry(limit)
		w.receiver.answers(c.answer)
		before := len(w.receiver.all())
		n := w.register(t, c.url, nil)
		_, done := w.deliver(t, w.report(t, n.Turn, callback.Completed, 1))
		got := w.get(t, n.ID)
		a := got.Deliveries[0].Attempts[0]
		var status int32
		var reason string
		if a.Status != nil {
			status = *a.Status
		}
		if a.Error != nil {
			reason = *a.Error
		}
		if done != c.done || status != c.status || reason != c.err || len(w.receiver.all())-before > 1 {
			t.Errorf("%s: done %v, %d %q, want %d %q", c.url, done, status, reason, c.status, c.err)
		}
		if text, _ := json.Marshal(got); strings.Contains(string(text), hush) {
			t.Errorf("the answer is shown: %s", text)
		}
	}
}

// TestPrivateReceiverIsNotReached uses an address that passes the check of the URL.
func TestPrivateReceiverIsNotReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := egresstest.NewCanary(t)
	n := w.register(t, address, nil)
	w.exec(t, `UPDATE callbacks SET url = $1`, "https://"+c.Addr+"/")
	w.deliver(t, w.report(t, n.Turn, callback.Completed, 1))
	if a := w.get(t, n.ID).Deliveries[0].Attempts[0]; a.Error == nil || *a.Error != "address_refused" {
		t.Errorf("%+v", a)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for text, want := range map[string][2]time.Duration{
		"60":  {time.Minute, time.Minute},
		"1":   {4 * time.Second, 6 * time.Second}, // the schedule has a longer pause
		"-5":  {4 * time.Second, 6 * time.Second},
		"now": {4 * time.Second, 6 * time.Second},
		time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat): {9 * time.Minute, 10 * time.Minute},
		"9999999": {24 * time.Hour, 24 * time.Hour},
	} {
		w.receiver.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		n := w.register(t, address, nil)
		if retry, done := w.deliver(t, w.report(t, n.Turn, callback.Completed, 1)); done || retry < want[0] || retry > want[1] {
			t.Errorf("Retry-After %s: %s", text, retry)
		}
	}
}

func TestGoneDisablesTheCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.status(http.StatusGone)
	n := w.register(t, address, nil)
	first := w.report(t, n.Turn, callback.InputRequired, 1)
	second := w.report(t, n.Turn, callback.Completed, 2)
	if _, done := w.deliver(t, first); !done {
		t.Error("attempts continue after 410")
	}
	if _, done := w.deliver(t, second); !done || len(w.receiver.all()) != 1 {
		t.Errorf("%d requests", len(w.receiver.all()))
	}
	if c := w.get(t, n.ID); !c.Disabled || c.Status != "failed" || len(c.Deliveries[0].Attempts) != 0 || len(c.Deliveries[1].Attempts) != 1 {
		t.Errorf("%+v", c)
	}
	w.tx(t, func(tx pgx.Tx) error {
		if made, err := w.store.Report(t.Context(), tx, n.Turn, callback.Completed, 3); len(made) != 0 || err != nil {
			t.Errorf("a disabled callback receives a request: %v", err)
		}
		return nil
	})
}

// TestStoppedAttemptIsNotWrittenDown stops the process while a receiver has not answered.
func TestStoppedAttemptIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	d := w.report(t, n.Turn, callback.Completed, 1)
	ctx, cancel := context.WithCancel(t.Context())
	w.receiver.answers(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, done, err := w.store.Deliver(ctx, d, job, answer); done || !errors.Is(err, context.Canceled) {
		t.Errorf("done %v, %v", done, err)
	}
	if c := w.get(t, n.ID); c.Status != "pending" || len(c.Deliveries[0].Attempts) != 0 {
		t.Errorf("%+v", c)
	}
	w.receiver.answers(nil)
	if _, done := w.deliver(t, d); !done {
		t.Error("it is not delivered afterwards")
	}
}

// share is how many attempts a workspace makes at once while no other makes any.
const share = callback.Places * fair.Share / (fair.Share + 1)

// TestSlowWorkspaceLeavesRoom lets the receiver of one workspace hang in the maximum number of
// attempts.
func TestSlowWorkspaceLeavesRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	came, leave := make(chan struct{}, share), make(chan struct{})
	w.receiver.answers(func(http.ResponseWriter, *http.Request) { came <- struct{}{}; <-leave })
	n := w.register(t, address, nil)
	var wg sync.WaitGroup
	for seq := range int64(share) {
		d := w.report(t, n.Turn, callback.InputRequired, seq)
		wg.Go(func() {
			if _, _, err := w.store.Deliver(t.Context(), d, job, answer); err != nil {
				t.Error(err)
			}
		})
	}
	for range share {
		wait.Receive(t, "the output", came)
	}
	w.receiver.answers(nil)
	more := w.report(t, n.Turn, callback.Completed, 100)
	if retry, done := w.deliver(t, more); done || retry <= 0 {
		t.Errorf("one attempt too many: %s %v", retry, done)
	}
	other := *w
	other.workspace, other.session = w.tenant(t, "other")
	if _, done := other.deliver(t, other.report(t, other.register(t, address, nil).Turn, callback.Completed, 1)); !done {
		t.Error("another workspace has to wait")
	}
	close(leave)
	wait.Until(t, "all goroutines", wg.Wait)
	if _, done := w.deliver(t, more); !done {
		t.Error("no place is free afterwards")
	}
}

// TestBodyThatCannotBeMade postpones the delivery.
func TestBodyThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	d := w.report(t, n.Turn, callback.Completed, 1)
	for _, data := range []string{"", "[]", `"x"`, "{", "null"} {
		if _, done, err := w.store.Deliver(t.Context(), d, job, func(context.Context, callback.Delivery) ([]byte, error) {
			return []byte(data), nil
		}); err == nil || done {
			t.Errorf("%q: done %v, %v", data, done, err)
		}
	}
	if _, done := w.deliver(t, d); !done || len(w.receiver.all()) != 1 {
		t.Errorf("%d requests", len(w.receiver.all()))
	}
	if empty, err := callback.Wrap(callback.Delivery{}, []byte(" { } "), []byte("{}")); err != nil || !json.Valid(empty) {
		t.Errorf("%s, %v", empty, err)
	}
}

// TestUnknownAndInternalNamesLookAlike keeps callers from finding out which names exist in the
// service's network.
func TestUnknownAndInternalNamesLookAlike(t *testing.T) {
	t.Parallel()
	unknown := callback.Reason(fmt.Errorf("dial: %w", &net.DNSError{Err: "no such host", Name: "db.corp", IsNotFound: true}))
	internal := callback.Reason(&egress.Error{Reason: "db.corp leads to no public address."})
	if unknown != internal {
		t.Errorf("a name that does not exist is %s, an internal one %s", unknown, internal)
	}
}
