package eventlog

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// erased is the data of an event in an erased session. No other event has this data.
const erased = "{}"

// Erase removes the content of a session's events up to one of them, in the transaction that erases
// the session and holds its lock. Ids, kinds and times stay.
func (l *Log) Erase(ctx context.Context, tx pgx.Tx, session uuid.UUID, upto int64) error {
	if err := l.q.WithTx(tx).EventsErase(ctx, session, upto); err != nil {
		return fmt.Errorf("erase events: %w", err)
	}
	return nil
}
