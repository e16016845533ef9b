package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

// historyRows is the maximum number of earlier messages that a turn loads.
const historyRows = 400

// Past is an earlier turn of a session.
type Past struct {
	Turn    uuid.UUID
	Message string          // the user's
	Answer  string          // the text that was shown
	Result  json.RawMessage // the answer in a schema; nil: none
	Log     []event.Event   // the records from which its steps are rebuilt
}

// Turn reads a turn's row.
func (tx *Tx) Turn(ctx context.Context) (Turn, error) {
	if tx.row.TurnID == nil {
		return Turn{}, nil
	}
	return readTurn(ctx, tx.q, *tx.row.TurnID)
}

// TurnLog is the data from which a turn is rebuilt.
type TurnLog struct {
	Events         []event.Event  // without the deltas
	Shown          eventlog.Shown // the text around the last whole reply
	HasHistory     bool           // History has messages
	HasAttachments bool           // files came with the message
}

// ReadTurnLog reads the data from which a turn is rebuilt, and the length of its text.
func (s *Store) ReadTurnLog(ctx context.Context, t Turn) (l TurnLog, err error) {
	rows, err := s.q.TurnEvents(ctx, t.SessionID, t.ID, t.CreatedAt.Add(-eventlog.Skew))
	if err != nil {
		return l, fmt.Errorf("read the turn's log: %w", err)
	}
	var reply int64
	attempts := 0
	l.Events = make([]event.Event, len(rows))
	for i, r := range rows {
		l.Events[i] = event.Event{Seq: r.Seq, Ord: r.Ord, Session: t.SessionID, Turn: r.TurnID, At: r.At, Kind: event.Kind(r.Kind), Data: r.Data}
		l.HasHistory, l.HasAttachments = r.HasHistory, r.HasAttachments
		switch l.Events[i].Kind {
		case event.KindReply:
			reply = r.Seq
		case event.KindStarted:
			attempts++
		}
	}
	if attempts < 2 { // a first attempt has shown nothing
		return l, nil
	}
	l.Shown, err = s.events.Shown(ctx, t.SessionID, t.ID, reply, t.CreatedAt)
	return l, err
}

// History reads the turns before a turn, oldest first.
func (s *Store) History(ctx context.Context, t Turn) (past []Past, err error) {
	rows, err := s.q.HistoryBefore(ctx, db.HistoryBeforeParams{SessionID: t.SessionID, TurnID: t.ID, Before: t.StartSeq,
		N: historyRows, SkewSeconds: eventlog.Skew.Seconds()})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	at := make(map[uuid.UUID]int)
	for _, r := range rows { // first the messages, since the records of an earlier turn can follow them
		if r.Kind != "user" && r.Kind != "assistant" {
			continue
		}
		i, known := at[r.TurnID]
		if !known {
			i = len(past)
			at[r.TurnID], past = i, append(past, Past{Turn: r.TurnID})
		}
		if p := &past[i]; r.Kind == "user" {
			p.Message = r.Content
		} else {
			p.Answer, p.Result = r.Content, r.Data
		}
	}
	for _, r := range rows {
		if i, known := at[r.TurnID]; known && r.Kind != "user" && r.Kind != "assistant" {
			past[i].Log = append(past[i].Log, event.Event{Session: t.SessionID, Turn: r.TurnID, Kind: event.Kind(r.Kind), Data: r.Data})
		}
	}
	return past, nil
}

// HistoryErased reports whether the messages that a fork has from other sessions were erased, or are
// past their retention.
func (s *Store) HistoryErased(ctx context.Context, session uuid.UUID) (bool, error) {
	erased, err := s.q.SessionHistoryErased(ctx, session)
	if err != nil {
		return false, fmt.Errorf("read the origin of a fork: %w", err)
	}
	return erased, nil
}

// FindResult returns the result of a call of a session; ok is false if it has none.
func (s *Store) FindResult(ctx context.Context, session uuid.UUID, toolUseID string) (output event.ToolOutput, ok bool, err error) {
	row, err := s.q.EventResult(ctx, session, eventlog.Skew.Seconds(), toolUseID)
	if errors.Is(err, pgx.ErrNoRows) {
		return output, false, nil
	}
	if err != nil {
		return output, false, fmt.Errorf("find a result: %w", err)
	}
	return event.ToolOutput{ToolUseID: toolUseID, Output: row.Output, Size: int(row.Size), File: row.File}, true, nil
}
