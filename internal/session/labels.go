package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
)

// Labels are what an application notes about a session or a message. A message that begins a
// session gives the session its labels; later messages keep theirs.
type Labels struct {
	User     string            // the end user, as the application names them; "": not known
	Metadata map[string]string // nil: none
}

// encodeMetadata returns the metadata as JSON, nil for none.
func (l Labels) encodeMetadata() []byte {
	if l.Metadata == nil {
		return nil
	}
	data, _ := json.Marshal(l.Metadata) // a map of texts cannot fail
	return data
}

// setLabels gives a new session the labels of its first message, and a message without a user that
// of its session.
func (tx *Tx) setLabels(n *NewTurn) {
	row := &tx.row
	if row.MessageCount == 0 {
		if row.EndUser == nil {
			row.EndUser = nilIfEmpty(n.Labels.User)
		}
		if row.Metadata == nil {
			row.Metadata = n.Labels.encodeMetadata()
		}
	}
	if n.Labels.User == "" && row.EndUser != nil {
		n.Labels.User = *row.EndUser
	}
}

// UserOf returns the end user of a turn that may begin: that of its message, else of the session.
func (tx *Tx) UserOf(n NewTurn) string {
	if n.Labels.User == "" && tx.row.EndUser != nil {
		return *tx.row.EndUser
	}
	return n.Labels.User
}

// Change is what Edit sets; nil leaves a field as it is.
type Change struct {
	Title    *string
	User     *string
	Metadata map[string]string // replaces all pairs
}

// Edit changes the title and the labels of a session, or fails with SESSION_NOT_FOUND. The session
// keeps its place in lists. Turns in progress keep the user of their message.
func (s *Store) Edit(ctx context.Context, workspace, id uuid.UUID, c Change) (Summary, error) {
	n, err := s.q.SessionChange(ctx, db.SessionChangeParams{WorkspaceID: workspace, ID: id, Title: c.Title, EndUser: c.User,
		Metadata: Labels{Metadata: c.Metadata}.encodeMetadata()})
	if err != nil {
		return Summary{}, fmt.Errorf("change session: %w", err)
	}
	if n == 0 {
		_, err := s.LiveHead(ctx, workspace, id)
		return Summary{}, err
	}
	return s.Summary(ctx, workspace, id)
}

// IsOfUser reports whether a session belongs to an end user of the application.
func (s *Store) IsOfUser(ctx context.Context, workspace, id uuid.UUID, user string) (bool, error) {
	own, err := s.q.SessionIsOfUser(ctx, workspace, id, user)
	if err != nil {
		return false, fmt.Errorf("compare the user of a session: %w", err)
	}
	return own, nil
}

// IsOwner reports whether an API key, or a key that it replaced by rotation, sent the first message
// of a session or made the fork. A session that does not exist is SESSION_NOT_FOUND.
func (s *Store) IsOwner(ctx context.Context, workspace, id uuid.UUID, key string) (bool, error) {
	owner, err := s.q.SessionOwner(ctx, workspace, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, NotFound(id)
	case err != nil:
		return false, fmt.Errorf("find the owner of a session: %w", err)
	case owner == nil || *owner == key:
		return owner != nil, nil
	}
	ok, err := s.q.APIKeySucceeds(ctx, key, workspace, *owner)
	if err != nil {
		return false, fmt.Errorf("follow the rotation of a key: %w", err)
	}
	return ok, nil
}
