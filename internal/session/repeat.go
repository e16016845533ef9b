package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/eventlog"
)

// Once identifies a request that must have one effect however often it arrives.
type Once struct {
	Workspace uuid.UUID
	Route     string // operationId
	Key       string // Idempotency-Key; "" for none
	Hash      []byte // SHA-256 of the request, without its secrets
	Caller    string // id of the sender's API key
}

// ErrRepeated is returned for a request that has already started a turn.
var ErrRepeated = errors.New("the request was sent before")

// ReserveKey reserves the key for a turn, or fails with ErrRepeated. If several requests arrive at
// once, one reserves the key and the others wait for its commit.
func (tx *Tx) ReserveKey(ctx context.Context, o Once, turn uuid.UUID) error {
	n, err := tx.q.IdempotencyTake(ctx, db.IdempotencyTakeParams{WorkspaceID: o.Workspace, Route: o.Route, Key: o.Key, Hash: o.Hash,
		TurnID: turn})
	if err != nil {
		return fmt.Errorf("take idempotency key: %w", err)
	}
	if n == 0 {
		return ErrRepeated
	}
	return nil
}

// Earlier is a turn that a request started before.
type Earlier struct {
	Turn     uuid.UUID
	From     eventlog.From // the beginning of its stream, or the client's position
	Callback uuid.UUID     // uuid.Nil for none
}

// FindRepeated finds the turn that a request started before; ok is false if there is none. Another
// request under the same key is IDEMPOTENCY_KEY_REUSED, and so is a request of another API key.
func (s *Store) FindRepeated(ctx context.Context, o Once) (e Earlier, ok bool, err error) {
	row, err := s.q.IdempotencyGet(ctx, o.Workspace, o.Route, o.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("read idempotency key: %w", err)
	}
	if !bytes.Equal(row.Hash, o.Hash) {
		return e, false, keyReusedError()
	}
	if err := checkSameKey(ctx, s.q, o, row.KeyID); err != nil {
		return e, false, err
	}
	e = Earlier{Turn: row.TurnID, From: eventlog.From{Session: row.SessionID, Seq: row.StartSeq - 1, Since: row.CreatedAt}}
	if row.CallbackID != nil {
		e.Callback = *row.CallbackID
	}
	return e, true, nil
}

// FindResent finds the turn that the same request of the same key started and that wrote the event
// the client saw last; ok is false if there is none. Ids can be guessed, and so can many messages:
// a key alone does not reveal what another key has started.
func (s *Store) FindResent(
	ctx context.Context, workspace uuid.UUID, key string, hash []byte, lastEvent int64,
) (e Earlier, ok bool, err error) {
	row, err := s.q.TurnByEvent(ctx, workspace, &key, hash, lastEvent)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("find the turn of an event: %w", err)
	}
	return Earlier{Turn: row.ID, From: eventlog.From{Session: row.SessionID, Seq: lastEvent, Since: row.CreatedAt}}, true, nil
}

// Retry is a request that its client marks as a retry.
type Retry struct {
	Workspace uuid.UUID
	Key       string
	Hash      []byte
	Session   uuid.UUID // uuid.Nil: the request names its session by CallerID
	CallerID  string
	Within    time.Duration
}

// FindRetried finds the turn that the original request started; ok is false if no such turn still
// owes its answer.
func (s *Store) FindRetried(ctx context.Context, r Retry) (turn uuid.UUID, ok bool, err error) {
	p := db.TurnRetriedParams{WorkspaceID: r.Workspace, KeyID: &r.Key, RequestHash: r.Hash, WithinSeconds: r.Within.Seconds(),
		CallerID: nilIfEmpty(r.CallerID)}
	if r.Session != uuid.Nil {
		p.SessionID = &r.Session
	}
	turn, err = s.q.TurnRetried(ctx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("find the turn of a retry: %w", err)
	}
	return turn, true, nil
}

// MarkDelivered records that the whole answer of a turn has been written to the sender of its
// message: the same request again is another message.
func (s *Store) MarkDelivered(ctx context.Context, turn uuid.UUID) error {
	if err := s.q.TurnMarkDelivered(ctx, turn); err != nil {
		return fmt.Errorf("mark the turn as delivered: %w", err)
	}
	return nil
}
