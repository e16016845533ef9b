package migrations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockKey is ours in the database's space of advisory locks: "parley" in ASCII.
const lockKey = 0x7061726c6579

const lockPoll = 50 * time.Millisecond

// lock is the session advisory lock around both migrators, on a connection that
// does nothing else.
type lock struct {
	conn *pgx.Conn
}

// acquire polls. Blocking in pg_advisory_lock would hold a snapshot that another
// replica's CREATE INDEX CONCURRENTLY waits for while we wait for that replica.
func acquire(ctx context.Context, config *pgx.ConnConfig) (*lock, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	l := &lock{conn: conn}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		got, err := l.try(ctx)
		if err != nil {
			l.release(ctx)
			return nil, fmt.Errorf("lock migrations: %w", err)
		}
		if got {
			return l, nil
		}
		select {
		case <-ctx.Done():
			l.release(ctx)
			return nil, fmt.Errorf("wait for another replica's migrations: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// answerTimeout bounds each statement on the lock's connection. None of them waits for anything.
const answerTimeout = 5 * time.Second

func (l *lock) try(ctx context.Context) (got bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = l.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey).Scan(&got)
	return got, err
}

// watch runs a step for as long as the lock is held. A step may take as long as it needs, but its
// connection shares the link of this one: once the lock's connection stops answering, the step ends.
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
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if err := l.held(ctx); err != nil {
				end(err)
				return
			}
		}
	})
	name, err := step(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return name, err
}

// held fails when the connection is gone and the lock with it.
func (l *lock) held(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := l.conn.Ping(ctx); err != nil {
		return fmt.Errorf("migration lock lost: %w", err)
	}
	return nil
}

// release ends the session, which frees the lock even after ctx is cancelled.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	l.conn.Close(ctx)
}
