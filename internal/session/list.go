package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/replan"
)

// Page is one page of a list. NextCursor is the cursor of the next page if HasMore.
type Page[T any] struct {
	Data       []T     `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// trimPage removes the row that was read only to find out whether more rows follow.
func trimPage[T any](items []T, limit int, cursor func(T) string) Page[T] {
	p := Page[T]{Data: items}
	if len(items) > limit {
		p.Data, p.HasMore = items[:limit], true
		p.NextCursor = new(cursor(items[limit-1]))
	}
	return p
}

// Summary is a session as lists show it.
type Summary struct {
	SessionID    uuid.UUID       `json:"session_id"`
	CallerID     *string         `json:"caller_id"`
	SessionKey   *string         `json:"session_key"`
	User         *string         `json:"user"`
	Title        string          `json:"title"`
	Status       Status          `json:"status"`
	Pending      *Pending        `json:"pending"`
	Error        *string         `json:"error"` // code of the newest turn's failure
	TurnID       *uuid.UUID      `json:"turn_id"`
	LastSeq      int64           `json:"last_seq"`
	MessageCount int32           `json:"message_count"`
	Usage        Totals          `json:"usage"`
	Metadata     json.RawMessage `json:"metadata"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	ErasedAt     *time.Time      `json:"erased_at,omitempty"`   // when its content was removed
	ForkedFrom   *Origin         `json:"forked_from,omitempty"` // nil: it is not a fork
}

// Totals is the sum of the usage of a session's turns. CostUSD is nil while no turn had a known
// price.
type Totals struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
}

// summaryRow is a row of the list of sessions.
type summaryRow struct {
	ID                        uuid.UUID
	CallerID                  *string
	Title                     string
	TurnID                    *uuid.UUID
	LastSeq                   int64
	MessageCount              int32
	InputTokens, OutputTokens int64
	CostUSD                   *float64
	CreatedAt, UpdatedAt      time.Time
	ErasedAt                  *time.Time
	EndUser                   *string
	Metadata                  []byte
	State, Error              *string
	ApprovalID                *uuid.UUID
	ApprovalKind              *string
	ApprovalExpiresAt         *time.Time
	ParentID                  *uuid.UUID
	ParentSeq                 *int64
	ParentErased              *bool // nil: there is no such session
}

// Summaries returns one page of a workspace's sessions, ordered by their last message or end of a
// turn. A cursor that this list did not make is INVALID_CURSOR.
func (s *Store) Summaries(ctx context.Context, workspace uuid.UUID, q SummaryQuery) (Page[Summary], error) {
	at, id, err := q.startPosition(workspace)
	if err != nil {
		return Page[Summary]{}, err
	}
	sql, args := q.SQL(workspace, at, id)
	items, err := s.querySummaries(ctx, sql, args)
	if err != nil {
		return Page[Summary]{}, fmt.Errorf("list sessions: %w", err)
	}
	return trimPage(items, q.Limit, func(last Summary) string { return q.nextCursor(workspace, last) }), nil
}

// Summary returns a session of a workspace as lists show it, or SESSION_NOT_FOUND.
func (s *Store) Summary(ctx context.Context, workspace, id uuid.UUID) (Summary, error) {
	items, err := s.querySummaries(ctx, "SELECT "+summaryColumns+" FROM "+summaryTables+" WHERE s.workspace_id = $1 AND s.id = $2",
		[]any{workspace, id})
	if err != nil {
		return Summary{}, fmt.Errorf("read session: %w", err)
	}
	if len(items) == 0 {
		return Summary{}, NotFound(id)
	}
	return items[0], nil
}

// querySummaries runs a statement that is planned for its arguments.
func (s *Store) querySummaries(ctx context.Context, sql string, args []any) ([]Summary, error) {
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	read, err := pgx.CollectRows(rows, pgx.RowToStructByPos[summaryRow])
	items := make([]Summary, len(read))
	for i, r := range read {
		items[i] = summaryOf(r)
	}
	return items, err
}

func summaryOf(r summaryRow) Summary {
	sum := Summary{
		SessionID: r.ID, CallerID: r.CallerID, User: r.EndUser, Title: r.Title, TurnID: r.TurnID, LastSeq: r.LastSeq,
		MessageCount: r.MessageCount,
		Usage:        Totals{r.InputTokens, r.OutputTokens, r.CostUSD}, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		Status:   NotStarted,
		Metadata: orEmpty(r.Metadata), Error: r.Error,
	}
	if r.ErasedAt != nil {
		sum.ErasedAt = new(r.ErasedAt.UTC())
	}
	if r.ParentID != nil {
		sum.ForkedFrom = &Origin{SessionID: *r.ParentID, Seq: *r.ParentSeq, Erased: r.ParentErased == nil || *r.ParentErased}
	}
	if r.CallerID != nil {
		sum.SessionKey = new("api:" + *r.CallerID)
	}
	if r.State != nil {
		sum.Status = StatusOf(State(*r.State))
	}
	if r.ApprovalID != nil {
		sum.Pending = &Pending{event.Input(*r.ApprovalKind), *r.ApprovalID, r.ApprovalExpiresAt.UTC()}
	}
	return sum
}

// orEmpty returns metadata as JSON: an object without pairs if there is none.
func orEmpty(metadata []byte) json.RawMessage {
	if metadata == nil {
		return json.RawMessage("{}")
	}
	return metadata
}

// Message is a message of one side, as lists show it.
type Message struct {
	MessageID        uuid.UUID           `json:"message_id"`
	User             *string             `json:"user,omitempty"`     // of a user's message
	Metadata         json.RawMessage     `json:"metadata,omitempty"` // likewise
	Named            string              `json:"-"`                  // the sender's name for it; "" if unnamed
	TurnID           uuid.UUID           `json:"turn_id"`
	Role             string              `json:"role"`
	Content          *string             `json:"content"`
	Output           *string             `json:"output"` // text of the turn's last step with text; nil: a user's message, or the turn has not ended
	Label            *string             `json:"label,omitempty"`
	Skill            *string             `json:"skill,omitempty"`
	SkillVersion     *int32              `json:"skill_version,omitempty"`
	Agent            string              `json:"agent,omitempty"` // "": a turn of an earlier release that has not started
	AgentVersion     *event.AgentVersion `json:"agent_version,omitempty"`
	Status           string              `json:"status"`
	StructuredResult json.RawMessage     `json:"structured_result,omitempty"`
	ToolCalls        json.RawMessage     `json:"tool_calls"`
	Attachments      []event.File        `json:"attachments"`
	Rejected         json.RawMessage     `json:"rejected_attachments,omitempty"` // attachments of the user's message
	References       json.RawMessage     `json:"references,omitempty"`
	Usage            json.RawMessage     `json:"usage,omitempty"`
	Error            *string             `json:"error"`
	ErrorMessage     string              `json:"-"` // the sentence of that failure; only Store.Answer reads it
	Failure          string              `json:"-"` // message of the error event; "" for none
	FirstSeq         int64               `json:"first_seq"`
	LastSeq          int64               `json:"last_seq"`
	CreatedAt        time.Time           `json:"created_at"`
	Erased           bool                `json:"erased,omitempty"`         // its content was removed
	Expired          bool                `json:"expired,omitempty"`        // rows of the log that it needs are past their retention
	InheritedFrom    *uuid.UUID          `json:"inherited_from,omitempty"` // the session that a fork has it from; nil: its own
}

// MessageQuery orders the list of a session's messages.
type MessageQuery struct {
	NewestFirst bool
	AsOf        *int64 // the list as it was after this event; nil: as it is now
	Limit       int    // at least 1
	Cursor      string // "": the first page
}

// Messages returns one page of a session's messages, those that a fork has from other sessions first,
// or SESSION_NOT_FOUND. A cursor that this list did not make is INVALID_CURSOR, and so is an event
// after the newest one.
func (s *Store) Messages(ctx context.Context, workspace, id uuid.UUID, q MessageQuery) (Page[Message], error) {
	seq, err := q.startPosition(id)
	if err != nil {
		return Page[Message]{}, err
	}
	head, err := s.Head(ctx, workspace, id)
	if err != nil {
		return Page[Message]{}, err
	}
	if q.AsOf != nil {
		if err := head.checkPosition("as_of_seq", *q.AsOf); err != nil {
			return Page[Message]{}, err
		}
	}
	rows, err := s.messageRows(ctx, id, seq, q)
	if err != nil {
		return Page[Message]{}, fmt.Errorf("list messages: %w", err)
	}
	items := make([]Message, len(rows))
	for i, r := range rows {
		m := &items[i]
		*m = messageOf(r.Message)
		if m.Erased = r.Erased; r.Inherited {
			m.InheritedFrom = &r.Message.SessionID
		}
		switch {
		case q.AsOf != nil:
			if err := s.rewind(ctx, m, r.Message.SessionID, *q.AsOf); err != nil {
				return Page[Message]{}, err
			}
		case m.Status == "in_progress" && m.TurnID == head.Turn: // its row is written when it ends
			m.LastSeq = max(m.LastSeq, head.LastSeq)
		}
	}
	if err := s.addTurns(ctx, items); err != nil {
		return Page[Message]{}, err
	}
	return trimPage(items, q.Limit, func(last Message) string { return q.nextCursor(id, last) }), nil
}

// messageRows reads the rows of a page that begins after a position, and one more.
func (s *Store) messageRows(ctx context.Context, id uuid.UUID, seq int64, q MessageQuery) ([]db.MessagesPageRow, error) {
	upto := int64(math.MaxInt64)
	if q.AsOf != nil {
		upto = *q.AsOf
	}
	if !q.NewestFirst {
		return s.q.MessagesPage(ctx, id, seq, upto, int32(q.Limit)+1)
	}
	if upto < seq {
		seq = upto + 1
	}
	newest, err := s.q.MessagesPageDesc(ctx, id, seq, int32(q.Limit)+1)
	rows := make([]db.MessagesPageRow, len(newest))
	for i, r := range newest {
		rows[i] = db.MessagesPageRow(r)
	}
	return rows, err
}

// addTurns adds to messages the agent that answers them and its version, and to the user's messages
// their user, their metadata and the attachments that could not be used.
func (s *Store) addTurns(ctx context.Context, messages []Message) error {
	turns := make(map[uuid.UUID]db.TurnsOfMessagesRow)
	for _, m := range messages {
		turns[m.TurnID] = db.TurnsOfMessagesRow{}
	}
	rows, err := s.q.TurnsOfMessages(ctx, slices.Collect(maps.Keys(turns)))
	if err != nil {
		return fmt.Errorf("read the turns of messages: %w", err)
	}
	for _, r := range rows {
		turns[r.ID] = r
	}
	for i := range messages {
		m := &messages[i]
		t := turns[m.TurnID]
		if m.Role == "user" {
			m.User, m.Metadata, m.Rejected = t.EndUser, t.Metadata, t.Rejected
		}
		if t.Agent != nil && t.AgentVersion != nil {
			m.Agent, m.AgentVersion = *t.Agent, new(event.AgentVersion(*t.AgentVersion))
		}
		m.SkillVersion = t.SkillVersion
	}
	return nil
}

// Answer returns a turn of a workspace and the agent's message in it, with the sentence of its error.
func (s *Store) Answer(ctx context.Context, workspace, turn uuid.UUID) (Turn, Message, error) {
	row, err := s.q.MessageAnswer(ctx, workspace, turn)
	if errors.Is(err, pgx.ErrNoRows) {
		return Turn{}, Message{}, fmt.Errorf("turn %s has no answer", turn)
	}
	if err != nil {
		return Turn{}, Message{}, fmt.Errorf("read answer: %w", err)
	}
	m := messageOf(row.Message)
	m.ErrorMessage = row.ErrorMessage
	return turnOf(row.Turn), m, nil
}

// SessionOf returns the session of a turn; ok is false if the workspace has no such turn.
func (s *Store) SessionOf(ctx context.Context, workspace, turn uuid.UUID) (id uuid.UUID, ok bool, err error) {
	row, err := s.q.MessageAnswer(ctx, workspace, turn)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("read turn: %w", err)
	}
	return row.Turn.SessionID, true, nil
}

func messageOf(r db.Message) Message {
	m := Message{
		MessageID: r.ID, TurnID: r.TurnID, Role: r.Role, Content: r.Content, Label: r.Label, Skill: r.Skill, Status: r.Status, Error: r.Error,
		StructuredResult: r.StructuredResult, ToolCalls: r.ToolCalls, Attachments: []event.File{}, Usage: r.Usage,
		FirstSeq: r.FirstSeq, LastSeq: r.LastSeq, CreatedAt: r.CreatedAt.UTC(),
	}
	if r.Failure != nil {
		m.Failure = *r.Failure
	}
	if r.Named != nil {
		m.Named = *r.Named
	}
	if r.Content != nil && r.Role == "assistant" {
		m.Output = new(lastStep(*r.Content, int(r.OutputAt)))
	}
	if r.Attachments != nil {
		_ = json.Unmarshal(r.Attachments, &m.Attachments) // written by this package
	}
	if string(r.Refs) != "[]" {
		m.References = r.Refs
	}
	return m
}

// lastStep returns the text of the last step, which begins at the byte at of the content.
func lastStep(content string, at int) string {
	if at == 0 || at > len(content) {
		return content
	}
	return strings.TrimPrefix(content[at:], event.StepBreak)
}
