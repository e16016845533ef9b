package session_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// TestEveryTransitionFromEveryState checks every cell of the matrix against the database: an
// allowed transition happens, a forbidden one changes nothing.
func TestEveryTransitionFromEveryState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	for _, from := range session.States {
		for _, trigger := range session.Triggers {
			t.Run(string(from)+"/"+string(trigger), func(t *testing.T) {
				lease, cursor := w.Begin(t, s, "hello")
				if _, err := w.Pool.Exec(t.Context(), `UPDATE turns SET state = $2 WHERE id = $1`, lease.Turn, string(from)); err != nil {
					t.Fatal(err)
				}
				question := uuid.New()
				if from == session.Waiting { // and it has the only open question
					_, err := w.Pool.Exec(t.Context(), `INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, created_at, expires_at)
						VALUES ($1, $2, $3, $4, 'approval', now(), now() + interval '1 hour')`, question, w.Workspace.ID, lease.Session, lease.Turn)
					if err != nil {
						t.Fatal(err)
					}
				}
				before := len(s.Rows(t, cursor))
				var happened bool
				if trigger == session.Claim {
					got, err := s.ClaimTurn(t.Context(), session.ClaimRequest{Session: lease.Session, Turn: lease.Turn, Lease: time.Second})
					if err != nil {
						t.Fatal(err)
					}
					happened = got.Ours
				}
				err := s.Update(t.Context(), lease.Session, func(tx *session.Tx) (err error) {
					switch trigger {
					case session.Claim:
					case session.Release:
						happened, err = tx.ReleaseTurn(t.Context(), lease, event.AfterCrash)
					case session.Park:
						_, happened, err = tx.ParkTurn(t.Context(), lease, time.Second, event.InputRequired{What: event.InputApproval,
							ApprovalID: uuid.New()}, time.Minute)
					case session.Resume:
						happened, err = tx.DecideQuestion(t.Context(), lease.Turn, event.Decision{ApprovalID: question,
							What: event.InputApproval, Outcome: event.Allowed})
					case session.Advance:
						_, happened, err = tx.Next(t.Context())
					default:
						e := session.Ending{Trigger: trigger}
						if trigger != session.Complete {
							f := event.InternalError.Failure("x")
							e.Failure = &f
						}
						c, err := tx.ReadClosing(t.Context(), session.Turn{ID: lease.Turn, SessionID: lease.Session})
						if err != nil {
							return err
						}
						happened, err = tx.EndTurn(t.Context(), c, e)
						return err
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				want, allowed := session.Next(from, trigger)
				if !allowed {
					want = from
				}
				var got string
				var epoch int64
				if err := w.Pool.QueryRow(t.Context(),
					`SELECT t.state, s.epoch FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = $1`, lease.Turn).Scan(&got,
					&epoch); err != nil {
					t.Fatal(err)
				}
				if happened != allowed || got != string(want) {
					t.Errorf("happened %v with state %s, want %v and %s", happened, got, allowed, want)
				}
				fenced := allowed && trigger != session.Resume && trigger != session.Advance // no worker holds a lease before these
				if moved := epoch != lease.Epoch; moved != fenced {
					t.Errorf("the fence moved: %v, want %v", moved, allowed)
				}
				if wrote := len(s.Rows(t, cursor)) > before; wrote && !allowed {
					t.Error("a refused transition wrote events")
				}
			})
		}
	}
}
