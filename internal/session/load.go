package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/event"
)

// historyRows is how many earlier messages a turn loads at most.
const historyRows = 400

// Past is an earlier message of a session.
type Past struct {
	Role    string // "user" or "assistant"
	Content string
}

// Turn reads a turn's row.
func (tx *Tx) Turn(ctx context.Context) (Turn, error) {
	if tx.Session.TurnID == nil {
		return Turn{}, nil
	}
	t, err := tx.q.TurnGet(ctx, *tx.Session.TurnID)
	if err != nil {
		return t, fmt.Errorf("read turn: %w", err)
	}
	return t, nil
}

// Shown is the text that readers of a turn have seen.
type Shown struct {
	Before bool   // text was shown before the last whole reply, or by it
	Tail   string // text that was shown after the last whole reply
}

// Log reads the rows from which a turn is rebuilt, without the deltas, and how far its text went.
func (s *Store) Log(ctx context.Context, t Turn) (log []event.Event, shown Shown, err error) {
	since := t.CreatedAt.Add(-skew)
	rows, err := s.q.TurnEvents(ctx, t.SessionID, &t.ID, since)
	if err != nil {
		return nil, shown, fmt.Errorf("read the turn's log: %w", err)
	}
	var reply int64
	log = make([]event.Event, len(rows))
	for i, r := range rows {
		log[i] = event.Event{Seq: r.Seq, Ord: r.Ord, Session: t.SessionID, Turn: r.TurnID, At: r.At, Kind: event.Kind(r.Kind), Data: r.Data}
		if log[i].Kind == event.KindReply {
			reply = r.Seq
		}
	}
	text, err := s.q.TurnTail(ctx, t.SessionID, t.ID, since, reply)
	if err != nil {
		return nil, shown, fmt.Errorf("read the turn's text: %w", err)
	}
	return log, Shown{Before: text.Spoken, Tail: text.Tail}, nil
}

// History reads the messages before a turn, oldest first.
func (s *Store) History(ctx context.Context, t Turn) ([]Past, error) {
	rows, err := s.q.MessagesBefore(ctx, t.SessionID, t.ID, t.StartSeq, historyRows)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	past := make([]Past, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		text := *r.Content
		if r.StructuredResult != nil {
			text = strings.TrimLeft(text+"\n\n"+string(r.StructuredResult), "\n")
		}
		if text != "" {
			past = append(past, Past{Role: r.Role, Content: text})
		}
	}
	return past, nil
}
