package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

// historyRows is the maximum number of earlier messages that a turn loads.
const historyRows = 400

// Past is an earlier message of a session.
type Past struct {
	Role    string // user or assistant; for a message that the caller supplied also tool
	Content string
	Calls   []event.ToolCall // calls of an assistant's message that the caller supplied
	CallID  string           // the call whose result a tool's message is
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

// History reads the messages before a turn, oldest first. Those that the caller supplied when the
// session began come before them.
func (s *Store) History(ctx context.Context, t Turn) ([]Past, error) {
	rows, err := s.q.MessagesBefore(ctx, db.MessagesBeforeParams{SessionID: t.SessionID, TurnID: t.ID, Before: t.StartSeq,
		N: historyRows, SkewSeconds: eventlog.Skew.Seconds()})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	past := make([]Past, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		if r.Role == string(event.KindSupplied) {
			supplied, err := event.Decode(event.KindSupplied, r.Data)
			if err != nil {
				return nil, err
			}
			past = append(suppliedHistory(supplied.(event.Supplied)), past...)
			continue
		}
		text := *r.Content
		if r.Data != nil {
			text = strings.TrimLeft(text+"\n\n"+string(r.Data), "\n")
		}
		if text != "" {
			past = append(past, Past{Role: r.Role, Content: text})
		}
	}
	return past, nil
}

// suppliedHistory returns the messages that the caller supplied.
func suppliedHistory(s event.Supplied) []Past {
	past := make([]Past, len(s.Messages))
	for i, m := range s.Messages {
		past[i] = Past{Role: m.Role, Content: m.Text, Calls: m.Calls, CallID: m.CallID}
	}
	return past
}
