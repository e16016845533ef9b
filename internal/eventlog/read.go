package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Place is the place of a reader's id in the log.
type Place struct {
	Turn   uuid.UUID // turn of the event, or the turn whose stream begins after the id
	IsOpen bool      // the event is the turn's open event
}

// Locate finds an id that a session has issued: the id of an event, or the one before a turn's open
// event, where its stream begins. ok is false if the log has no such row. Locate ignores rows older
// than since.
func (l *Log) Locate(ctx context.Context, session uuid.UUID, seq int64, since time.Time) (p Place, ok bool, err error) {
	row, err := l.q.EventTurn(ctx, session, seq, since.Add(-Skew))
	if errors.Is(err, pgx.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("look for an event: %w", err)
	}
	return Place{Turn: row.TurnID, IsOpen: row.IsOpen}, true, nil
}

// Shown is the text that readers of a turn have seen, around one of its events.
type Shown struct {
	Before    bool   // text was shown before the event
	Tail      string // text that was shown after it
	Reasoning string // reasoning that was shown after it
}

// Shown reads the text of a turn around the event seq. since is when the turn was created.
func (l *Log) Shown(ctx context.Context, session, turn uuid.UUID, seq int64, since time.Time) (Shown, error) {
	row, err := l.q.TurnTail(ctx, session, turn, since.Add(-Skew), seq)
	if err != nil {
		return Shown{}, fmt.Errorf("read the turn's text: %w", err)
	}
	return Shown{Before: row.Spoken, Tail: row.Tail, Reasoning: row.Thought}, nil
}
