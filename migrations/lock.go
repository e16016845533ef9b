package migrations

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockKey is our key among the database's advisory locks: "parley" in ASCII.
const lockKey = 0x7061726c6579

const lockPoll = 50 * time.Millisecond

// lock is the session advisory lock around both migrators, on a connection that
// does nothing else.
type lock struct {
	conn *pgx.Conn
	name string // application_name of the connections that it protects
}

// acquire polls. Blocking in pg_advisory_lock would hold a snapshot that another
// replica's CREATE INDEX CONCURRENTLY waits for while we wait for that replica.
func (m *migrator) acquire(ctx context.Context) (*lock, error) {
	conn, err := pgx.ConnectConfig(ctx, m.config)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	l := &lock{conn: conn, name: m.name}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	var reported time.Time
	for {
		got, err := l.try(ctx)
		if err != nil {
			l.release(ctx)
			return nil, fmt.Errorf("lock migrations: %w", err)
		}
		if got {
			return l, nil
		}
		if time.Since(reported) > waitingEvery {
			m.log.InfoContext(ctx, "wait for another replica's migrations")
			reported = time.Now()
		}
		select {
		case <-ctx.Done():
			l.release(ctx)
			return nil, fmt.Errorf("wait for another replica's migrations: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// waitingEvery is how often a migrator that waits for the lock reports it.
const waitingEvery = 10 * time.Second

// answerTimeout limits each statement on the lock's connection. None of them waits for a lock.
const answerTimeout = 5 * time.Second

// takeLock also makes PostgreSQL end the connection, which frees the lock, after 10 s without a
// statement. A migrating process sends one every second.
const takeLock = `SELECT set_config('idle_session_timeout', '10s', false), pg_try_advisory_lock($1)`

func (l *lock) try(ctx context.Context) (got bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = l.conn.QueryRow(ctx, takeLock, lockKey).Scan(nil, &got)
	return got, err
}

// watch runs a step for as long as the lock is held and the step's connection works. A statement
// may take as long as it needs.
func (l *lock) watch(ctx context.Context, step func(context.Context) (string, error)) (string, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var watching sync.WaitGroup
	defer watching.Wait()
	done := make(chan struct{})
	defer close(done)
	watching.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		moved := time.Now()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			moves, err := l.moves(ctx)
			switch {
			case err != nil:
				end(err)
				return
			case moves:
				moved = time.Now()
			case time.Since(moved) > answerTimeout:
				end(errSilent)
				return
			}
		}
	})
	name, err := step(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%v)", context.Cause(ctx), err) // with the cause's class, not a cancellation's
	}
	return name, err
}

// errSilent ends a step that waits for a response although PostgreSQL is not working for it. It is
// transient, like a stalled link.
var errSilent = fmt.Errorf("the connection of the migration is silent: %w", context.DeadlineExceeded)

// stepMoves reports whether PostgreSQL works for the step or did so within the last second. The
// state of a connection can be hidden; then it counts as work.
const stepMoves = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()
	AND (coalesce(state, '') NOT LIKE 'idle%' OR state_change > clock_timestamp() - interval '1 second'))`

// moves fails if the lock's connection is broken, and the lock with it.
func (l *lock) moves(ctx context.Context) (moves bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := l.conn.QueryRow(ctx, stepMoves, l.name).Scan(&moves); err != nil {
		return false, fmt.Errorf("migration lock lost: %w", err)
	}
	return moves, nil
}

// held fails if the connection is broken, and the lock with it.
func (l *lock) held(ctx context.Context) error {
	_, err := l.moves(ctx)
	return err
}

// release ends the session, which frees the lock even after ctx is cancelled.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	l.conn.Close(ctx)
}
