package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

// rewind shows a message as it was after the event seq, which is not before its first one. The message
// of a turn that had not ended has what the log held up to there.
func (s *Store) rewind(ctx context.Context, m *Message, session uuid.UUID, seq int64) error {
	if m.Role == "user" || m.Status != "in_progress" && m.LastSeq <= seq {
		return nil
	}
	*m = Message{MessageID: m.MessageID, TurnID: m.TurnID, Role: m.Role, Status: "in_progress", ToolCalls: json.RawMessage("[]"),
		Attachments: []event.File{}, FirstSeq: m.FirstSeq, LastSeq: m.FirstSeq, CreatedAt: m.CreatedAt, Erased: m.Erased,
		InheritedFrom: m.InheritedFrom}
	if m.Erased {
		return nil
	}
	since := m.CreatedAt.Add(-eventlog.Skew)
	log, err := s.q.TurnEvents(ctx, session, m.TurnID, since)
	if err != nil {
		return fmt.Errorf("read the turn's log: %w", err)
	}
	before := log[:0]
	for _, r := range log {
		if r.Seq <= seq {
			before = append(before, r)
		}
	}
	sum, err := summarizeLog(before)
	if err != nil {
		return err
	}
	shown, err := s.q.TurnShown(ctx, db.TurnShownParams{SessionID: session, TurnID: m.TurnID, Since: since, StartSeq: m.FirstSeq, Upto: seq,
		Replies: sum.Replies})
	if err != nil {
		return fmt.Errorf("read the turn's text: %w", err)
	}
	m.LastSeq = max(m.LastSeq, shown.LastSeq)
	if m.Expired = !shown.IsWhole; !m.Expired && shown.Content != "" {
		m.Content, m.Output = &shown.Content, new(lastStep(shown.Content, int(shown.OutputAt)))
	}
	return m.addSummary(sum)
}

// addSummary adds the calls, the references and the usage of a turn's log to its message.
func (m *Message) addSummary(sum summary) (err error) {
	if m.ToolCalls, err = json.Marshal(sum.ToolCalls); err != nil {
		return fmt.Errorf("encode tool calls: %w", err)
	}
	if len(sum.References) > 0 {
		if m.References, err = json.Marshal(sum.References); err != nil {
			return fmt.Errorf("encode references: %w", err)
		}
	}
	if sum.Usage != nil {
		if m.Usage, err = json.Marshal(sum.Usage); err != nil {
			return fmt.Errorf("encode usage: %w", err)
		}
	}
	return nil
}
