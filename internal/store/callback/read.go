package callback

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
)

// Limits of a callback's view: its newest deliveries, and their newest attempts.
const (
	maxDeliveries = 20
	maxAttempts   = 50
)

// Callback is the public view of a callback. Its URL lacks the query, which often contains a token.
type Callback struct {
	CallbackID uuid.UUID       `json:"callback_id"`
	SessionID  uuid.UUID       `json:"session_id"`
	TurnID     uuid.UUID       `json:"turn_id"`
	URL        string          `json:"url"`
	Metadata   json.RawMessage `json:"metadata"`
	Status     string          `json:"status"` // status of the newest delivery, or waiting
	Disabled   bool            `json:"disabled"`
	Deliveries []Shown         `json:"deliveries"` // newest first
	CreatedAt  time.Time       `json:"created_at"`
}

// Shown is the public view of a delivery.
type Shown struct {
	WebhookID uuid.UUID       `json:"webhook_id"`
	Type      Type            `json:"type"`
	Seq       int64           `json:"seq"`
	Status    string          `json:"status"`
	Payload   json.RawMessage `json:"payload"` // null until the first attempt
	Attempts  []Attempt       `json:"attempts"`
	NextAt    *time.Time      `json:"next_attempt_at"`
	CreatedAt time.Time       `json:"created_at"`
}

// Attempt is one attempt at a delivery.
type Attempt struct {
	N         int32     `json:"n"`
	At        time.Time `json:"at"`
	Status    *int32    `json:"status"` // null: no response arrived
	LatencyMS int32     `json:"latency_ms"`
	Error     *string   `json:"error"` // null: delivered
}

// Get reads a callback, or fails with CALLBACK_NOT_FOUND.
func (s *Store) Get(ctx context.Context, workspace, id uuid.UUID) (Callback, error) {
	row, err := s.q.CallbackGet(ctx, workspace, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Callback{}, notFound()
	}
	if err != nil {
		return Callback{}, fmt.Errorf("read callback: %w", err)
	}
	address, err := s.openAddress(row.WorkspaceID, row.TurnID, row.Name, row.URL, row.Address)
	if err != nil {
		return Callback{}, err
	}
	c := Callback{CallbackID: row.ID, SessionID: row.SessionID, TurnID: row.TurnID, URL: hideQuery(address), Metadata: row.Metadata,
		Status: row.Status, Disabled: row.DisabledAt != nil, Deliveries: []Shown{}, CreatedAt: row.CreatedAt.UTC()}
	list, err := s.q.DeliveriesOf(ctx, workspace, id, maxDeliveries)
	if err != nil {
		return Callback{}, fmt.Errorf("read deliveries: %w", err)
	}
	ids := make([]uuid.UUID, len(list))
	for i, d := range list {
		ids[i] = d.ID
	}
	attempts, err := s.q.AttemptsOf(ctx, workspace, ids, maxAttempts)
	if err != nil {
		return Callback{}, fmt.Errorf("read attempts: %w", err)
	}
	for _, d := range list {
		view := Shown{WebhookID: d.ID, Type: Type(d.Type), Seq: d.Seq, Status: d.Status, Payload: d.Body, Attempts: []Attempt{},
			NextAt: utcTime(d.NextAt), CreatedAt: d.CreatedAt.UTC()}
		for _, a := range attempts {
			if a.DeliveryID == d.ID {
				view.Attempts = append(view.Attempts, Attempt{a.N, a.At.UTC(), a.Status, a.LatencyMS, a.Error})
			}
		}
		c.Deliveries = append(c.Deliveries, view)
	}
	return c, nil
}

// Summary is a delivery in a list.
type Summary struct {
	CallbackID  uuid.UUID  `json:"callback_id"`
	WebhookID   uuid.UUID  `json:"webhook_id"`
	SessionID   uuid.UUID  `json:"session_id"`
	TurnID      uuid.UUID  `json:"turn_id"`
	Type        Type       `json:"type"`
	Seq         int64      `json:"seq"`
	Status      string     `json:"status"`
	URL         string     `json:"url"`
	LastAttempt *Attempt   `json:"last_attempt"`
	NextAt      *time.Time `json:"next_attempt_at"`
	CreatedAt   time.Time  `json:"created_at"`
}

// Page is one page of the list. NextCursor is the cursor of the next page if HasMore.
type Page struct {
	Data       []Summary `json:"data"`
	HasMore    bool      `json:"has_more"`
	NextCursor *string   `json:"next_cursor"`
}

// Statuses are the possible statuses of a delivery.
var Statuses = []string{pending, delivered, failed}

// List returns one page of a workspace's deliveries, newest first. A cursor that this list did not
// make is INVALID_CURSOR.
func (s *Store) List(ctx context.Context, workspace uuid.UUID, status, cursor string, limit int) (Page, error) {
	var before *uuid.UUID
	if cursor != "" {
		id, err := readCursor(cursor)
		if err != nil {
			return Page{}, err
		}
		before = &id
	}
	var only *string
	if status != "" {
		only = &status
	}
	rows, err := s.lists.DeliveriesPage(ctx, workspace, only, before, int32(limit)+1)
	if err != nil {
		return Page{}, fmt.Errorf("list deliveries: %w", err)
	}
	p := Page{Data: []Summary{}}
	for i, r := range rows {
		if i == limit {
			p.HasMore, p.NextCursor = true, new(makeCursor(rows[i-1].ID))
			break
		}
		address, err := s.openAddress(workspace, r.TurnID, r.Name, r.URL, r.Address)
		if err != nil {
			return Page{}, err
		}
		sum := Summary{CallbackID: r.CallbackID, WebhookID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, Type: Type(r.Type), Seq: r.Seq,
			Status: r.Status, URL: hideQuery(address), NextAt: utcTime(r.NextAt), CreatedAt: r.CreatedAt.UTC()}
		if r.LastAt != nil && r.LastLatencyMS != nil {
			sum.LastAttempt = &Attempt{r.Attempts, r.LastAt.UTC(), r.LastStatus, *r.LastLatencyMS, r.LastError}
		}
		p.Data = append(p.Data, sum)
	}
	return p, nil
}

// A cursor is opaque to callers: the list's letter and the last id of the page.
func makeCursor(id uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{'d'}, id[:]...))
}

func readCursor(text string) (uuid.UUID, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 17 || b[0] != 'd' {
		return uuid.Nil, &fault.Error{Code: fault.InvalidCursor, Param: "cursor",
			Message: "This cursor does not belong to this list. Take next_cursor of the page before, or begin without a cursor."}
	}
	return uuid.UUID(b[1:]), nil
}

// hideQuery returns a URL without its query.
func hideQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if u.RawQuery != "" {
		u.RawQuery = ""
		return u.String() + "?…"
	}
	return u.String()
}

func utcTime(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
