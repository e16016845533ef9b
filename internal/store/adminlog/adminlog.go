// Package adminlog reads the log of changes of the configuration. PostgreSQL's triggers write it:
// no change goes unrecorded, whichever program makes it. The package never writes.
package adminlog

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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

// Position returns the present end of the log, for actor.Actor.Seen. Read it before the objects that
// a change is made from: what is committed then precedes it, and nothing else does.
func (s *Store) Position(ctx context.Context) (string, error) {
	position, err := s.lists.AdminLogPosition(ctx)
	if err != nil {
		return "", fmt.Errorf("read the position of the log of changes: %w", err)
	}
	return position, nil
}

// IsPosition reports whether text has the form of a position: PostgreSQL's snapshot, a lower and an
// upper bound of transactions and, in ascending order between them, those in progress.
func IsPosition(text string) bool {
	parts := strings.Split(text, ":")
	if len(text) > maxPosition || len(parts) != 3 {
		return false
	}
	low, err := strconv.ParseUint(parts[0], 10, 63)
	high, errHigh := strconv.ParseUint(parts[1], 10, 63)
	if err != nil || errHigh != nil || low < 1 || low > high {
		return false
	}
	if parts[2] == "" {
		return true
	}
	for _, running := range strings.Split(parts[2], ",") {
		n, err := strconv.ParseUint(running, 10, 63)
		if err != nil || n < low || n >= high {
			return false
		}
		low = n
	}
	return true
}

// maxPosition is the maximum length of a position, for some thousand transactions in progress.
const maxPosition = 64 << 10

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
