// Package adminlog reads the log of changes of the configuration. PostgreSQL's triggers write it:
// no change goes unrecorded, whichever program makes it. The package never writes.
package adminlog

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Entry is one change.
type Entry struct {
	ID        int64           `json:"id"`
	At        time.Time       `json:"at"`
	Workspace *uuid.UUID      `json:"workspace_id"` // null: of the server
	Object    string          `json:"object"`       // the table
	ObjectID  string          `json:"object_id"`
	Action    string          `json:"action"` // insert, update or delete
	Actor     Actor           `json:"actor"`
	Before    json.RawMessage `json:"before"` // null after an insert
	After     json.RawMessage `json:"after"`  // null after a delete
}

// Actor is the administrator or program that made a change.
type Actor struct {
	Kind      string  `json:"kind"` // key, member, command, service or database
	ID        *string `json:"id"`
	Name      *string `json:"name"`
	Address   *string `json:"address"`
	RequestID *string `json:"request_id"`
}

// Query selects entries. Zero members select all.
type Query struct {
	Workspace *uuid.UUID
	Object    *string
	ObjectID  *string
	Actor     *string    // id of a key or a member
	Since     *time.Time // entries from then on
	Cursor    string     // "": the first page
	Limit     int
}

// Page is one page of the log. NextCursor is the cursor of the next page if HasMore.
type Page struct {
	Data       []Entry `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// Store reads the log.
type Store struct{ lists *db.Queries }

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{db.New(replan.Fresh{Pool: pool})} }

// List returns one page of the log, newest first. A cursor that this list did not make is
// INVALID_CURSOR.
func (s *Store) List(ctx context.Context, q Query) (Page, error) {
	p := Page{Data: []Entry{}}
	arg := db.AdminLogPageParams{Workspace: q.Workspace, Object: q.Object, ObjectID: q.ObjectID, Actor: q.Actor, Page: int32(q.Limit) + 1}
	if q.Cursor != "" {
		before, err := parseCursor(q.Cursor)
		if err != nil {
			return p, err
		}
		arg.BeforeID = &before
	}
	rows, err := s.lists.AdminLogPage(ctx, arg)
	if err != nil {
		return p, fmt.Errorf("list the log of changes: %w", err)
	}
	for i, r := range rows {
		if q.Since != nil && r.At.Before(*q.Since) {
			break
		}
		if i == q.Limit {
			p.HasMore, p.NextCursor = true, new(formatCursor(rows[i-1].ID))
			break
		}
		p.Data = append(p.Data, Entry{
			ID: r.ID, At: r.At.UTC(), Workspace: r.WorkspaceID, Object: r.Object, ObjectID: r.ObjectID, Action: r.Action,
			Actor: Actor{r.ActorKind, r.ActorID, r.ActorName, r.Address, r.RequestID}, Before: r.Before, After: r.After,
		})
	}
	return p, nil
}

// A cursor is opaque to callers: the list's letter and the last id of the page.
func formatCursor(id int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte{'l'}, uint64(id)))
}

func parseCursor(text string) (int64, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 9 || b[0] != 'l' {
		return 0, &fault.Error{Code: fault.InvalidCursor, Param: "cursor",
			Message: "This cursor does not belong to this list. Take next_cursor of the page before, or begin without a cursor."}
	}
	return int64(binary.BigEndian.Uint64(b[1:])), nil
}
