package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// purgeAtOnce is how many rows one statement removes, in about ten milliseconds. A repeated
	// request under one of these keys waits for the statement. A single statement for all rows
	// would remove nothing if it reached statement_timeout.
	purgeAtOnce = 1000
	// purgePause leaves the disk to other writers between two statements.
	purgePause = 20 * time.Millisecond
)

// purgeKeys removes the Idempotency-Keys that are a day old, and the responses stored under them.
func (s *Store) purgeKeys(ctx context.Context) error {
	return errors.Join(
		purgeBatches(ctx, "Idempotency-Keys", s.q.IdempotencyPurge),
		purgeBatches(ctx, "answers to repeated requests", s.q.AnswersPurge),
	)
}

// purgeBatches removes rows in batches, each in a transaction of its own.
func purgeBatches(ctx context.Context, what string, remove func(ctx context.Context, n int32) (int64, error)) error {
	for {
		n, err := remove(ctx, purgeAtOnce)
		if err != nil {
			return fmt.Errorf("remove old %s: %w", what, err)
		}
		if n < purgeAtOnce || ctx.Err() != nil {
			return nil
		}
		sleepContext(ctx, purgePause)
	}
}

// sleepContext waits for d or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
