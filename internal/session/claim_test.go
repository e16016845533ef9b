package session_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
)

// queue starts a session with a turn that waits for a worker.
func (w *world) queue(t *testing.T, s *sessiontest.Replica) session.ClaimRequest {
	t.Helper()
	return w.queueMessage(t, s, "hello")
}

func (w *world) queueMessage(t *testing.T, s *sessiontest.Replica, content string) session.ClaimRequest {
	t.Helper()
	c := session.ClaimRequest{Turn: uuid.Must(uuid.NewV7()), Lease: 10 * time.Second}
	err := s.Open(t.Context(), session.Ref{Workspace: w.Workspace.ID}, func(tx *session.Tx) error {
		c.Session = tx.SessionID()
		_, _, err := tx.Begin(t.Context(), session.NewTurn{ID: c.Turn, Message: event.Message{Content: content}, MaxResponseSeconds: 600,
			MaxTurns: 50,
			Job:      session.Job{Args: []byte(`{}`)}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestClaimsOfOneTransaction claims several turns at once: a queued turn, one without room in its
// workspace, one without room in the process, a locked one, a running one, and one that is queued
// twice.
func TestClaimsOfOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	if _, err := w.Pool.Exec(t.Context(), `UPDATE workspaces SET max_running = 2`); err != nil {
		t.Fatal(err)
	}
	running, older, younger, locked, refused := w.queue(t, s), w.queue(t, s), w.queue(t, s), w.queue(t, s), w.queue(t, s)
	sessiontest.Claim(t, s, running.Session, running.Turn)
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, locked.Session); err != nil {
		t.Fatal(err)
	}
	refused.Admit = func(workspace uuid.UUID) bool {
		if workspace != w.Workspace.ID {
			t.Errorf("a place was requested for workspace %s", workspace)
		}
		return false
	}
	got, err := session.ClaimTurns(t.Context(), s.Store, []session.ClaimRequest{younger, locked, refused, older, running, older})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []session.Claimed{{}, {Locked: true}, {}, {Ours: true}, {}, {Locked: true}} {
		if got[i].Ours != want.Ours || got[i].Locked != want.Locked {
			t.Errorf("claim %d: ours %v, locked %v", i, got[i].Ours, got[i].Locked)
		}
	}
	if lease := got[3].Lease; lease.Session != older.Session || lease.Turn != older.Turn || lease.Epoch != got[3].Turn.Epoch ||
		got[3].Turn.State != session.Running {
		t.Errorf("claimed %+v, %s", lease, got[3].Turn.State)
	}
	rows, err := w.Pool.Query(t.Context(), `
		SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id
		WHERE t.job_id IS NULL AND t.state = 'queued' AND s.last_ord = (SELECT count(*) FROM events e WHERE e.session_id = s.id) ORDER BY t.created_at`)
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(waiting) != 2 || waiting[0] != younger.Turn || waiting[1] != refused.Turn {
		t.Errorf("turns without a job: %v, want %s and %s: %v", waiting, younger.Turn, refused.Turn, err)
	}
	if evs := s.Rows(t, eventlog.From{Session: older.Session}); evs[len(evs)-1].Kind != event.KindStarted {
		t.Errorf("the last event of a claimed turn is %s", evs[len(evs)-1].Kind)
	}
}

// TestAClaimReturnsTheLogOfAFirstAttempt compares the log in a claim with the log that
// Store.ReadTurnLog reads. The claim of a second attempt or of a large message has no log.
func TestAClaimReturnsTheLogOfAFirstAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	if _, err := w.Pool.Exec(t.Context(),
		`UPDATE workspaces SET model = 'openai/x', instructions = 'Be kind.', history_tokens = 1234`); err != nil {
		t.Fatal(err)
	}
	claim := func(c session.ClaimRequest) session.Claimed {
		t.Helper()
		got, err := s.ClaimTurn(t.Context(), c)
		if err != nil || !got.Ours {
			t.Fatalf("claimed %+v: %v", got, err)
		}
		return got
	}
	small := w.queue(t, s)
	got := claim(small)
	kind := session.Agent{Fallbacks: []string{}, Model: "openai/x", Instructions: "Be kind.", HistoryTokens: 1234}
	if !reflect.DeepEqual(got.Agent, kind) || got.Turn.Agent != "default" || got.Turn.AgentVersion != 2 {
		t.Errorf("%s, version %d, is %+v, want %+v", got.Turn.Agent, got.Turn.AgentVersion, got.Agent, kind)
	}
	want, err := s.Store.ReadTurnLog(t.Context(), got.Turn)
	if err != nil || len(want.Events) != 3 {
		t.Fatalf("the log is %+v: %v", want, err)
	}
	if got.Log == nil || !reflect.DeepEqual(*got.Log, want) {
		t.Errorf("the claim returned the log\n%+v, want\n%+v", got.Log, want)
	}
	err = s.Update(t.Context(), small.Session, func(tx *session.Tx) error {
		_, err := tx.ReleaseTurn(t.Context(), got.Lease, event.AfterCrash)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pool.Exec(t.Context(), `UPDATE workspaces SET instructions = 'Be quick.'`); err != nil {
		t.Fatal(err)
	}
	again := claim(small)
	if again.Log != nil || again.Turn.Epoch == got.Turn.Epoch {
		t.Errorf("the claim of a second attempt has the log %+v", again.Log)
	}
	if !reflect.DeepEqual(again.Agent, kind) || again.Turn.AgentVersion != 2 {
		t.Errorf("a second attempt after a publication has version %d, %+v", again.Turn.AgentVersion, again.Agent)
	}
	large := w.queueMessage(t, s, strings.Repeat("long ", 10_000))
	if got := claim(large); got.Log != nil {
		t.Error("the claim contains a large message")
	}
}
