package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Once handles a request that does not start a turn. It runs fn, or returns the stored response if
// this API key sent the same request under this idempotency key within a day. One of several
// concurrent requests runs and the others wait for its response. Failures are not stored. Without a
// key fn always runs.
//
// fn commits by itself. If the process dies or the database becomes unavailable in between, the
// next request runs fn again, so fn must be idempotent.
func (s *Store) Once(ctx context.Context, o Once, fn func(context.Context) (status int, body []byte, err error)) (status int, body []byte,
	replayed bool, err error) {
	if o.Key == "" {
		status, body, err = fn(ctx)
		return status, body, false, err
	}
	// Each request holds a connection while fn needs another one: some must stay free.
	select {
	case s.once <- struct{}{}:
		defer func() { <-s.once }()
	case <-ctx.Done():
		return 0, nil, false, ctx.Err()
	}
	answered := false
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := q.AnswerLock(ctx, o.Workspace, o.Route, o.Key); err != nil {
			return fmt.Errorf("lock idempotency key: %w", err)
		}
		earlier, err := q.AnswerGet(ctx, o.Workspace, o.Route, o.Key)
		switch {
		case err == nil && !bytes.Equal(earlier.Hash, o.Hash):
			return keyReusedError()
		case err == nil:
			status, body, replayed = int(earlier.Status), earlier.Answer, true
			return checkSameKey(ctx, q, o, earlier.KeyID)
		case !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("read answer: %w", err)
		}
		if !answered { // a repeat after a stale plan
			if status, body, err = fn(ctx); err != nil {
				return err
			}
			answered = true
		}
		return q.AnswerPut(ctx, db.AnswerPutParams{WorkspaceID: o.Workspace, Route: o.Route, Key: o.Key, Hash: o.Hash,
			Status: int32(status), Answer: body, KeyID: nilIfEmpty(o.Caller)})
	})
	if answered && err != nil { // the work is done, and the caller needs its result
		s.log.WarnContext(ctx, "keep the answer to an idempotent request", "route", o.Route, "err", err)
		err = nil
	}
	return status, body, replayed, err
}

// Answered reports whether any request of a route has already used its key, the same one or
// another.
func (s *Store) Answered(ctx context.Context, o Once) (bool, error) {
	_, err := s.q.AnswerGet(ctx, o.Workspace, o.Route, o.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	return true, nil
}

// checkSameKey rejects the repeat of a request that another API key sent. The response may contain
// more than this key may read, so only keys that replaced the first one by rotation receive it.
func checkSameKey(ctx context.Context, q *db.Queries, o Once, earlier *string) error {
	if earlier == nil || *earlier == o.Caller {
		return nil
	}
	ok, err := q.APIKeySucceeds(ctx, o.Caller, o.Workspace, *earlier)
	if err != nil {
		return fmt.Errorf("follow the rotation of a key: %w", err)
	}
	if !ok {
		return &fault.Error{Code: fault.IdempotencyKeyReused, Param: "Idempotency-Key",
			Message: "This Idempotency-Key was used with another API key. Use a new key for a new request; to retry, use the API key of " +
				"the first attempt."}
	}
	return nil
}

// keyReusedError returns the error for another request under a used key.
func keyReusedError() *fault.Error {
	return &fault.Error{Code: fault.IdempotencyKeyReused, Param: "Idempotency-Key",
		Message: "This Idempotency-Key was used with another request. Use a new key for a new request; to retry, send the same " +
			"request unchanged."}
}

// onceAbreast is how many requests may hold a connection for their key.
func onceAbreast(connections int32) int { return max(1, int(connections)/4) }
