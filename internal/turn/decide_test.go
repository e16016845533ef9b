package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// asking requires an approval within window for every call of the ledger's tool.
func asking(window time.Duration) func(*turn.Config) {
	return func(c *turn.Config) { c.Permissions, c.Window = permission.New(c.Pool), window }
}

// question follows a turn to its approval and returns the approval's id.
func question(t testing.TB, r *replica, st turn.Started) uuid.UUID {
	t.Helper()
	for evs, err := range r.events.Follow(t.Context(), st.From) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range evs {
			if ask, ok := must(ev.Body()).(event.InputRequired); ok {
				return ask.ApprovalID
			}
			if ev.Kind == event.KindDone {
				t.Fatal("the turn ended without an approval")
			}
		}
	}
	panic("unreachable")
}

// approvalInput and approvalOutput are the operations on one approval as their callers observe
// them.
type approvalInput struct {
	read   bool
	wanted event.Outcome
}

type approvalOutput struct {
	status  string // after the call; "" if the call did not return it
	decided bool   // by this call
}

// approvals models one approval: pending until the first answer or until it expires, which happens
// without an operation.
var approvals = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{"pending"} },
	Step: func(state, in, out any) []any {
		i, o := in.(approvalInput), out.(approvalOutput)
		var next []any
		for _, now := range []string{state.(string), "expired"} {
			if now == "expired" && state != "pending" && state != "expired" {
				continue
			}
			switch {
			case i.read && o.status == now:
				next = append(next, now)
			case !i.read && now == "pending" && o.decided && o.status == string(i.wanted):
				next = append(next, string(i.wanted))
			case !i.read && now != "pending" && !o.decided && o.status == now:
				next = append(next, now)
			}
		}
		return next
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// TestDecisionAgainstExpiry races answers, competing answers and the clock for four hundred
// approvals on two replicas. Every history is possible for a single approval, and exactly the
// allowed calls ran.
func TestDecisionAgainstExpiry(t *testing.T) {
	t.Parallel()
	const lanes, rounds = 8, 50
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	const window = 60 * time.Millisecond
	replicas := []*replica{w.replica(t, asking(window)), w.replica(t, asking(window))}
	go func() {
		for range lanes * rounds {
			select {
			case <-l.entered:
				l.leave <- struct{}{}
			case <-t.Context().Done():
				return
			}
		}
	}()
	var mu sync.Mutex
	outcomes := map[string]int{}
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for range rounds {
				r := replicas[lane%2]
				st, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "book it"})
				if err != nil {
					t.Error(err)
					return
				}
				id := question(t, r, st)
				history := race(t, w, replicas, id, window)
				if porcupine.CheckOperations(approvals, history) != true {
					t.Errorf("no approval has this history: %+v", history)
				}
				evs := read(t, r, st)
				status, ran := "", false
				for _, ev := range evs {
					switch b := must(ev.Body()).(type) {
					case event.Decision:
						if status != "" {
							t.Errorf("a second decision: %s after %s", b.Outcome, status)
						}
						status = string(b.Outcome)
					case event.ToolResult:
						ran = b.OK
					}
				}
				if ran != (status == "allowed") {
					t.Errorf("%s, and the call ran: %v", status, ran)
				}
				for _, op := range history {
					if o := op.Output.(approvalOutput); o.decided && o.status != status {
						t.Errorf("a caller received %s, the log has %s", o.status, status)
					}
				}
				mu.Lock()
				outcomes[status]++
				mu.Unlock()
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	var early int
	err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM approvals WHERE (status = 'expired') <> (decided_at >= expires_at)`).Scan(&early)
	if err != nil || early != 0 {
		t.Errorf("%d approvals were decided on the wrong side of their expiry, %v", early, err)
	}
	t.Log(outcomes)
	if outcomes["allowed"] == 0 || outcomes["denied"] == 0 || outcomes["expired"] == 0 {
		t.Errorf("the test does not race: %v", outcomes)
	}
}

// race answers and reads one approval from several clients, around its expiry.
func race(t *testing.T, w *world, replicas []*replica, id uuid.UUID, window time.Duration) []porcupine.Operation {
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	begin := time.Now()
	for client, in := range []approvalInput{{wanted: event.Allowed}, {wanted: event.Denied}, {wanted: event.Allowed}, {read: true},
		{read: true}} {
		wg.Go(func() {
			pause := time.NewTimer(time.Duration(rand.Int64N(int64(2 * window))))
			<-pause.C
			r := replicas[rand.IntN(2)]
			op := porcupine.Operation{ClientId: client, Input: in, Call: time.Since(begin).Nanoseconds()}
			op.Output = r.approval(t, w, id, in)
			op.Return = time.Since(begin).Nanoseconds()
			mu.Lock()
			defer mu.Unlock()
			history = append(history, op)
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	return history
}

// approval does one operation.
func (r *replica) approval(t *testing.T, w *world, id uuid.UUID, in approvalInput) approvalOutput {
	if in.read {
		a, err := r.sessions.Approval(t.Context(), w.workspace.ID, id)
		if err != nil {
			t.Error(err)
		}
		return approvalOutput{status: a.Status}
	}
	d, err := r.turns.Decide(t.Context(), w.workspace.ID, turn.Answer{Approval: id, Outcome: in.wanted, Key: "k"})
	if f := fault.From(err); f != nil {
		return approvalOutput{status: f.Detail.Status}
	}
	if err != nil {
		t.Error(err)
	}
	return approvalOutput{status: d.Status, decided: !d.Already}
}

// TestAnAnswerInTimeIsWaitedFor commits an answer after the expiry that arrived before it.
// Concurrent reads wait for the answer: no reader receives "expired".
func TestAnAnswerInTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	newLedger(t, w, false)
	r := w.replica(t, asking(3*time.Second))
	st := w.start(t, r, "book it")
	id := question(t, r, st)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE`, st.Session); err != nil {
		t.Fatal(err)
	}
	tag,
		err := tx.Exec(t.Context(),
		`UPDATE approvals SET status = 'allowed', decided_at = now() WHERE id = $1 AND expires_at > clock_timestamp()`, id)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d rows, %v", tag.RowsAffected(), err)
	}
	for over := false; !over; {
		if err := w.pool.QueryRow(t.Context(), `SELECT expires_at < clock_timestamp() FROM approvals WHERE id = $1`, id).Scan(&over); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan string, 2)
	go func() {
		a, err := r.sessions.Approval(t.Context(), w.workspace.ID, id)
		got <- fmt.Sprint(a.Status, err)
	}()
	go func() {
		page, err := r.sessions.Approvals(t.Context(), w.workspace.ID, session.ApprovalQuery{Limit: 10})
		if len(page.Data) != 1 {
			page.Data = make([]session.Approval, 1)
		}
		got <- fmt.Sprint(page.Data[0].Status, err)
	}()
	for waiting := 0; waiting < 2; {
		err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND `+
			`wait_event_type = 'Lock' AND query LIKE '%ApprovalSettle%'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			t.Fatalf("meanwhile it is %s", wait.Receive(t, "a result", got))
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status := wait.Receive(t, "a result", got); status != "allowed<nil>" {
			t.Errorf("then it is %s", status)
		}
	}
}

// TestExpiryWhileNobodyRuns stops every replica across the expiry of an approval. After the restart
// the approval is expired at once for every caller, and the session continues.
func TestExpiryWhileNobodyRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	newLedger(t, w, false)
	r := w.replica(t, asking(300*time.Millisecond))
	st := w.start(t, r, "book it")
	id := question(t, r, st)
	r.stop()
	w.overdue(t, id)
	back := w.replica(t, func(c *turn.Config) { asking(time.Minute)(c) })
	_, err := back.turns.Decide(t.Context(), w.workspace.ID, turn.Answer{Approval: id, Outcome: event.Allowed, Key: "k"})
	if f := fault.From(err); f == nil || f.Code != fault.ApprovalExpired {
		t.Errorf("a late answer: %v", err)
	}
	evs := read(t, back, st)
	if got := kinds(evs); !strings.HasSuffix(got, "input_required decision started tool_verdict tool_use tool_result text reply usage done") {
		t.Errorf("then came %s", got)
	}
	for _, ev := range evs {
		if d, ok := must(ev.Body()).(event.Decision); ok && d.Outcome != event.Expired {
			t.Errorf("decided %+v", d)
		}
	}
	next, err := back.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: st.Session, Command: "never mind"})
	if err != nil {
		t.Fatal(err)
	}
	question(t, back, next)
}

// TestRejectedAnswerIsRecorded answers an approval too late while no replica checks the clock. The
// rejection is the approval's end: PostgreSQL's clock may be set back afterwards.
func TestRejectedAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	newLedger(t, w, false)
	r := w.replica(t, asking(time.Second))
	st := w.start(t, r, "book it")
	id := question(t, r, st)
	r.stop()
	w.overdue(t, id)
	_, err := r.turns.Decide(t.Context(), w.workspace.ID, turn.Answer{Approval: id, Outcome: event.Allowed, Key: "k"})
	if f := fault.From(err); f == nil || f.Code != fault.ApprovalExpired {
		t.Errorf("a late answer: %v", err)
	}
	var status, state string
	if err := w.pool.QueryRow(t.Context(), `SELECT a.status, t.state FROM approvals a JOIN turns t ON t.id = a.turn_id WHERE a.id = $1`,
		id).Scan(&status, &state); err != nil {
		t.Fatal(err)
	}
	if status != "expired" || state != "queued" {
		t.Errorf("then the approval is %s and the turn %s", status, state)
	}
}

// TestWaitingCostsNothing checks that a waiting turn has no running job, no lease, and uses none of
// its time.
func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	newLedger(t, w, false)
	r := w.replica(t, asking(time.Hour))
	st := w.start(t, r, "book it")
	id := question(t, r, st)
	for running := 1; running > 0; { // the worker leaves right after the commit
		err := w.pool.QueryRow(t.Context(),
			`SELECT count(*) FROM river_job WHERE kind = 'turn' AND state IN ('running', 'available')`).Scan(&running)
		if err != nil {
			t.Fatal(err)
		}
	}
	var text string
	err := w.pool.QueryRow(t.Context(),
		`SELECT row_to_json(j)::text FROM (SELECT state, args, scheduled_at > now() + interval '59 minutes' AS later
		FROM river_job WHERE kind = 'approval_expiry') j`).Scan(&text)
	var job struct {
		State string
		Args  map[string]string
		Later bool
	}
	if err != nil || json.Unmarshal([]byte(text), &job) != nil || job.State != "scheduled" || !job.Later ||
		job.Args["approval_id"] != id.String() || len(job.Args) != 3 {
		t.Errorf("%s, %v", text, err)
	}
	var node *int
	var started *time.Time
	var where string
	if err := w.pool.QueryRow(t.Context(), `SELECT state, node, started_at FROM turns WHERE id = $1`, st.Turn).Scan(&where, &node,
		&started); err != nil {
		t.Fatal(err)
	}
	if where != "waiting" || node != nil || started != nil {
		t.Errorf("%s on node %v since %v", where, node, started)
	}
}

// TestExpiredStaysExpired reads an approval whose timely answer is committed later, and one that is
// canceled at its expiry. No reader receives "expired" for an approval that ends in another way.
func TestExpiredStaysExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	newLedger(t, w, false)
	r := w.replica(t, asking(time.Second))
	first, second := w.start(t, r, "book it"), w.start(t, r, "book it")
	answered, canceled := question(t, r, first), question(t, r, second)
	r.stop() // no process checks the clock any more

	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE`, first.Session); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `UPDATE approvals SET status = 'allowed', decided_at = expires_at WHERE id = $1`, answered); err != nil {
		t.Fatal(err)
	}
	w.overdue(t, answered)
	w.overdue(t, canceled)
	status := func(id uuid.UUID) string { return r.approval(t, w, id, approvalInput{read: true}).status }
	said := make(chan string, 1)
	go func() { said <- status(answered) }()
	for waits := false; !waits; {
		select {
		case s := <-said:
			t.Fatalf("%s, while an answer is being committed", s)
		default:
		}
		err := w.pool.QueryRow(t.Context(),
			`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := wait.Receive(t, "a status", said); s != "allowed" {
		t.Errorf("%s, after the answer", s)
	}

	before := status(canceled)
	if _, err := r.turns.Cancel(t.Context(), w.workspace.ID, second.Session); err != nil {
		t.Fatal(err)
	}
	if after := status(canceled); before != "expired" || after != before {
		t.Errorf("%s, then %s", before, after)
	}
}

// overdue waits until an approval has expired.
func (w *world) overdue(t *testing.T, id uuid.UUID) {
	t.Helper()
	for over := false; !over; {
		if err := w.pool.QueryRow(t.Context(), `SELECT expires_at < clock_timestamp() FROM approvals WHERE id = $1`, id).Scan(&over); err != nil {
			t.Fatal(err)
		}
	}
}
