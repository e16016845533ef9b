package migrations

import (
	"context"
	"fmt"
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
		var got bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey).Scan(&got); err != nil {
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

// held fails when the connection is gone and the lock with it.
func (l *lock) held(ctx context.Context) error {
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
