package session_test

import (
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// TestEveryTransitionFromEveryState walks the matrix cell by cell against the
// database: what the matrix allows happens, what it does not leaves no trace.
func TestEveryTransitionFromEveryState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.replica(t)
	for _, from := range session.States {
		for _, trigger := range []session.Trigger{session.Claim, session.Release, session.Complete, session.Fail, session.Cancel} {
			t.Run(string(from)+"/"+string(trigger), func(t *testing.T) {
				lease, cursor := w.begin(t, s, "hello")
				if _, err := w.pool.Exec(t.Context(), `UPDATE turns SET state = $2 WHERE id = $1`, lease.Turn, string(from)); err != nil {
					t.Fatal(err)
				}
				before := len(w.rows(t, s, cursor))
				var happened bool
				err := s.Update(t.Context(), lease.Session, func(tx *session.Tx) (err error) {
					switch trigger {
					case session.Claim:
						_, _, happened, err = tx.Claim(t.Context(), lease.Turn, 1e9)
					case session.Release:
						happened, err = tx.Release(t.Context(), lease)
					default:
						e := session.Ending{Trigger: trigger}
						if trigger != session.Complete {
							f := event.InternalError.Failure("x")
							e.Failure = &f
						}
						happened, err = tx.End(t.Context(), lease.Turn, e)
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
				if err := w.pool.QueryRow(t.Context(), `SELECT t.state, s.epoch FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = $1`, lease.Turn).Scan(&got, &epoch); err != nil {
					t.Fatal(err)
				}
				if happened != allowed || got != string(want) {
					t.Errorf("happened %v and led to %s, want %v and %s", happened, got, allowed, want)
				}
				if moved := epoch != lease.Epoch; moved != allowed {
					t.Errorf("the fence moved: %v, want %v", moved, allowed)
				}
				if wrote := len(w.rows(t, s, cursor)) > before; wrote && !allowed {
					t.Error("a refused transition wrote events")
				}
			})
		}
	}
}
