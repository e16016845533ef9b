package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
)

// Erase removes the digests of a session that is erased, in its transaction. The next link covers
// the rows that remain.
func (s *Store) Erase(ctx context.Context, tx pgx.Tx, _, session uuid.UUID) error {
	q := db.New(tx)
	if err := q.ChainForget(ctx, &session); err != nil {
		return fmt.Errorf("erase digests: %w", err)
	}
	if err := q.ChainNotice(ctx, "erased", &session, nil); err != nil {
		return fmt.Errorf("note an erasure for the chain: %w", err)
	}
	return nil
}

// NoteLate records, in its transaction, that a session has an event after the end of its turn.
func (s *Store) NoteLate(ctx context.Context, tx pgx.Tx, _, session uuid.UUID) error {
	if err := db.New(tx).ChainNotice(ctx, "late", &session, nil); err != nil {
		return fmt.Errorf("note an event for the chain: %w", err)
	}
	return nil
}

// drop is the detail of a link for a dropped partition.
type drop struct {
	Partition string    `json:"partition"`
	Deltas    bool      `json:"deltas"`
	Before    time.Time `json:"before"` // its events were older
}

// NoteDrop records, in its transaction, that retention drops a partition of the log.
func (s *Store) NoteDrop(ctx context.Context, tx pgx.Tx, partition string, deltas bool, before time.Time) error {
	detail, err := json.Marshal(drop{partition, deltas, before.UTC()})
	if err != nil {
		return err
	}
	if err := db.New(tx).ChainNotice(ctx, "dropped", nil, detail); err != nil {
		return fmt.Errorf("note a dropped partition for the chain: %w", err)
	}
	return nil
}
