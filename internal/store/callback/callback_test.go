package callback_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/callback"
)

func TestCallbacksAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := map[string]string{}
	for i := range callback.MaxMetadata + 1 {
		many[strings.Repeat("k", i+1)] = ""
	}
	for _, c := range []struct {
		url      string
		metadata map[string]string
		code     fault.Code
		params   string
	}{
		{"https://example.com/", map[string]string{strings.Repeat("é", 40): strings.Repeat("é", 500)}, "", ""},
		{"https://listen.invalid/hook", nil, "", ""},
		{"http://example.com/", nil, fault.InvalidCallbackURL, ""},
		{"https://127.0.0.1/", many, fault.InvalidCallbackURL, ""},
		{"https://example.com/", many, fault.InvalidRequestBody, "/callback/metadata"},
		{"https://example.com/", map[string]string{"": "x", "a/b~": strings.Repeat("é", 501), "nul": "\x00", strings.Repeat("k", 41): "",
			"\xff": ""}, fault.InvalidRequestBody,
			"/callback/metadata /callback/metadata/a~1b~0 /callback/metadata /callback/metadata/nul /callback/metadata"},
	} {
		err := w.store.Check(c.url, c.metadata)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", c.url, err)
			}
			continue
		}
		f := fault.From(err)
		if f == nil || f.Code != c.code {
			t.Errorf("%s %v: %v", c.url, c.metadata, err)
			continue
		}
		var params []string
		for _, v := range f.Detail.Violations {
			params = append(params, v.Param)
		}
		if got := strings.Join(params, " "); got != c.params {
			t.Errorf("%s %v: %s", c.url, c.metadata, got)
		}
	}
	w.tx(t, func(tx pgx.Tx) error {
		if err := w.store.Register(t.Context(), tx, callback.New{URL: "https://[::1]/"}); fault.From(err) == nil {
			t.Errorf("registered: %v", err)
		}
		return nil
	})
}

// TestReportIsPartOfItsTransaction rolls an event back.
func TestReportIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	back := errors.New("rolled back")
	err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		if made, err := w.store.Report(t.Context(), tx, n.Turn, callback.Completed, 1); len(made) != 1 || err != nil {
			t.Errorf("%v %v", made, err)
		}
		return back
	})
	if c := w.get(t, n.ID); !errors.Is(err, back) || c.Status != "waiting" || len(c.Deliveries) != 0 {
		t.Errorf("%v: %+v", err, c)
	}
	w.tx(t, func(tx pgx.Tx) error {
		if made, err := w.store.Report(t.Context(), tx, uuid.New(), callback.Completed, 1); len(made) != 0 || err != nil {
			t.Errorf("a turn without a callback has a report: %v", err)
		}
		return nil
	})
}

func TestCallbackOfAnotherWorkspaceIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	w.report(t, n.Turn, callback.Completed, 1)
	other, _ := w.tenant(t, "other")
	for _, c := range []struct{ workspace, id uuid.UUID }{{other, n.ID}, {w.workspace, uuid.New()}} {
		if _, err := w.store.Get(t.Context(), c.workspace, c.id); fault.From(err) == nil || fault.From(err).Code != fault.CallbackNotFound {
			t.Errorf("get: %v", err)
		}
		w.tx(t, func(tx pgx.Tx) error {
			if _, _, err := w.store.Redeliver(t.Context(), tx, c.workspace, c.id); fault.From(err) == nil ||
				fault.From(err).Code != fault.CallbackNotFound {
				t.Errorf("redeliver: %v", err)
			}
			return nil
		})
	}
	if p, err := w.store.List(t.Context(), other, "", "", 10); err != nil || len(p.Data) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRedeliveryBeginsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	again := func(job int64) (id uuid.UUID, ok bool) {
		t.Helper()
		w.tx(t, func(tx pgx.Tx) (err error) {
			if id, ok, err = w.store.Redeliver(t.Context(), tx, w.workspace, n.ID); ok {
				err = w.store.Assign(t.Context(), tx, id, job)
			}
			return err
		})
		return id, ok
	}
	if _, ok := again(job); ok {
		t.Error("a callback is sent without a report")
	}
	w.receiver.status(410)
	w.deliver(t, w.report(t, n.Turn, callback.InputRequired, 1))
	w.exec(t, `UPDATE callbacks SET disabled_at = NULL`)
	d := w.report(t, n.Turn, callback.Completed, 2)
	w.deliver(t, d)
	w.receiver.status(500)
	if id, ok := again(job + 1); id != d || !ok {
		t.Errorf("redelivers %s, want the newest, %s", id, d)
	}
	if c := w.get(t, n.ID); c.Disabled || c.Status != "pending" {
		t.Errorf("%+v", c)
	}
	if _, done := w.deliver(t, d); !done || len(w.receiver.all()) != 2 {
		t.Error("the old job delivers as well")
	}
	retry, done, err := w.store.Deliver(t.Context(), d, job+1, answer)
	if err != nil || done || retry > callback.Schedule[0]*12/10 {
		t.Errorf("the schedule does not restart: %s %v %v", retry, done, err)
	}
	all := w.receiver.all()
	if a, b := all[1], all[2]; string(a.body) != string(b.body) || a.header.Get("webhook-id") != b.header.Get("webhook-id") {
		t.Errorf("%s, then %s", a.body, b.body)
	}
	if a := w.get(t, n.ID).Deliveries[0].Attempts; len(a) != 2 || a[1].N != 2 {
		t.Errorf("%+v", a)
	}
}

func TestOverdueDeliveriesAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	d := w.report(t, n.Turn, callback.Completed, 1)
	w.report(t, n.Turn, callback.Completed, 2)
	overdue := func() []callback.Overdue {
		t.Helper()
		list, err := w.store.Overdue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := overdue(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	w.exec(t, `UPDATE callback_deliveries SET next_at = now() - interval '6 seconds' WHERE id = $1`, d)
	list := overdue()
	if len(list) != 1 || list[0] != (callback.Overdue{Delivery: d, Job: job}) {
		t.Fatalf("%+v", list)
	}
	for _, want := range []bool{true, false} {
		w.tx(t, func(tx pgx.Tx) error {
			ok, err := w.store.Orphaned(t.Context(), tx, list[0])
			if ok != want {
				t.Errorf("orphaned: %v, want %v", ok, want)
			}
			if ok {
				err = w.store.Assign(t.Context(), tx, d, job+1)
			}
			return err
		})
	}
	// While an attempt is running, it does not count as lost.
	if _, done, err := w.store.Deliver(t.Context(), d, job+1, answer); err != nil || !done || len(overdue()) != 0 {
		t.Errorf("%v %v", done, err)
	}
}

// TestBegunAttemptIsNotOrphaned begins an attempt after its delivery was found overdue.
func TestBegunAttemptIsNotOrphaned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.report(t, w.register(t, address, nil).Turn, callback.Completed, 1)
	w.exec(t, `UPDATE callback_deliveries SET next_at = now() - interval '6 seconds' WHERE id = $1`, d)
	list, err := w.store.Overdue(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	w.receiver.answers(func(http.ResponseWriter, *http.Request) {
		w.tx(t, func(tx pgx.Tx) error {
			ok, err := w.store.Orphaned(t.Context(), tx, list[0])
			if ok {
				t.Error("the delivery counts as lost during its attempt")
			}
			return err
		})
	})
	if _, done := w.deliver(t, d); !done {
		t.Error("it was not delivered")
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.register(t, address, nil)
	w.receiver.status(410)
	for seq := range int64(5) {
		w.report(t, n.Turn, callback.InputRequired, seq)
	}
	w.deliver(t, w.report(t, n.Turn, callback.Completed, 5))
	var seqs []int64
	cursor := ""
	for range 4 {
		p, err := w.store.List(t.Context(), w.workspace, "", cursor, 2)
		if err != nil || p.HasMore != (p.NextCursor != nil) {
			t.Fatalf("%+v, %v", p, err)
		}
		for _, d := range p.Data {
			seqs = append(seqs, d.Seq)
		}
		if !p.HasMore {
			break
		}
		cursor = *p.NextCursor
	}
	for i, seq := range []int64{5, 4, 3, 2, 1, 0} {
		if len(seqs) != 6 || seqs[i] != seq {
			t.Fatalf("%v", seqs)
		}
	}
	for status, want := range map[string]int{"pending": 5, "failed": 1, "delivered": 0} {
		if p, err := w.store.List(t.Context(), w.workspace, status, "", 100); err != nil || len(p.Data) != want {
			t.Errorf("%s: %+v, %v", status, p, err)
		} else if status == "failed" && (p.Data[0].LastAttempt == nil || *p.Data[0].LastAttempt.Error != "gone" ||
			p.Data[0].URL != "https://example.com/hook?…") {
			t.Errorf("%+v", p.Data[0])
		}
	}
	for _, bad := range []string{"x", "AAAA", strings.Repeat("A", 23), strings.Repeat("A", 1000)} {
		if _, err := w.store.List(t.Context(), w.workspace, "", bad, 2); fault.From(err) == nil || fault.From(err).Code != fault.InvalidCursor {
			t.Errorf("cursor %.20s: %v", bad, err)
		}
	}
}
