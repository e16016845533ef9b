package server

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// AttachFiles adds the files of messages, with addresses that are valid from now and begin with
// base.
func (s *Server) AttachFiles(ctx context.Context, base string, workspace uuid.UUID, messages []session.Message) error {
	turns := make([]uuid.UUID, len(messages))
	for i, m := range messages {
		turns[i] = m.TurnID
	}
	files, err := s.Files.OfTurns(ctx, workspace, turns)
	if err != nil {
		return err
	}
	for _, f := range files {
		CompleteLinks(base, f.In)
		CompleteLinks(base, f.Out)
	}
	for i := range messages {
		m := &messages[i]
		m.Attachments = files[m.TurnID].Out
		if m.Role == "user" {
			m.Attachments = files[m.TurnID].In
		}
		if m.Attachments == nil {
			m.Attachments = []event.File{}
		}
	}
	return nil
}
