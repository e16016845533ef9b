package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// purgeAtOnce is how many rows one statement removes, in some ten milliseconds. A request that
	// comes again under one of these keys waits for the statement. One statement for all would also
	// remove nothing where they are so many that it meets statement_timeout.
	purgeAtOnce = 1000
	// purgePause leaves the disk to the writers between two statements.
	purgePause = 20 * time.Millisecond
)

// purgeKeys removes the Idempotency-Keys that are a day old, and the answers kept under them.
func (s *Store) purgeKeys(ctx context.Context) error {
	return errors.Join(
		purge(ctx, "Idempotency-Keys", s.q.IdempotencyPurge),
		purge(ctx, "answers to repeated requests", s.q.AnswersPurge),
	)
}

// purge removes rows batch by batch, each in a transaction of its own.
func purge(ctx context.Context, what string, remove func(ctx context.Context, n int32) (int64, error)) error {
	for {
		n, err := remove(ctx, purgeAtOnce)
		if err != nil {
			return fmt.Errorf("remove old %s: %w", what, err)
		}
		if n < purgeAtOnce || ctx.Err() != nil {
			return nil
		}
		pause(ctx, purgePause)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
