package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
)

// EraseOf is EraseContent for a session of a workspace, by its id or its caller, or fails with
// SESSION_NOT_FOUND.
func (s *Store) EraseOf(ctx context.Context, workspace uuid.UUID, id *uuid.UUID, caller *string, by string) (session uuid.UUID, e Erasure,
	err error) {
	session, err = s.q.SessionToErase(ctx, workspace, id, caller)
	if errors.Is(err, pgx.ErrNoRows) && id != nil {
		return session, e, fault.New(fault.SessionNotFound, "The session %s does not exist in this workspace.", *id)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return session, e, fault.New(fault.SessionNotFound,
			"The workspace has no such session. An erased session has no caller any more: name it by its id.")
	}
	if err != nil {
		return session, e, fmt.Errorf("find the session to erase: %w", err)
	}
	e, err = s.EraseContent(ctx, session, by)
	return session, e, err
}

// ErasureRecord is the record of an erasure. It outlives the session.
type ErasureRecord struct {
	SessionID uuid.UUID `json:"session_id"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
}

// Erasures returns one page of a workspace's record of erasures, newest first.
func (s *Store) Erasures(ctx context.Context, workspace uuid.UUID, cursor string, limit int) (Page[ErasureRecord], error) {
	at, id, err := decodeTimeCursor(place{list: erasuresList}, cursor, workspace)
	if err != nil {
		return Page[ErasureRecord]{}, err
	}
	rows, err := s.lists.ErasuresPage(ctx, workspace, at, id, int32(limit)+1)
	if err != nil {
		return Page[ErasureRecord]{}, fmt.Errorf("list erasures: %w", err)
	}
	items := make([]ErasureRecord, len(rows))
	for i, r := range rows {
		items[i] = ErasureRecord{r.SessionID, r.By, r.At.UTC()}
	}
	return trimPage(items, limit, func(last ErasureRecord) string {
		return place{erasuresList, false, last.At.UnixMicro(), last.SessionID}.encodeCursor(workspace)
	}), nil
}

// OpenTurns counts the turns of a workspace that have not ended.
type OpenTurns struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"` // for an approval or a secret
	Queued  int `json:"queued"`
	LinedUp int `json:"lined_up"` // behind another turn of their session
}

// OpenTurns returns the turns of a workspace that have not ended.
func (s *Store) OpenTurns(ctx context.Context, workspace uuid.UUID) (OpenTurns, error) {
	n, err := s.q.TurnsOpen(ctx, workspace)
	if err != nil {
		return OpenTurns{}, fmt.Errorf("count open turns: %w", err)
	}
	return OpenTurns{int(n.Running), int(n.Waiting), int(n.Queued), int(n.LinedUp)}, nil
}
