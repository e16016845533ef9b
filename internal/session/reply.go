package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
)

// ToolResult is the result of a call as it is posted.
type ToolResult struct {
	ToolUseID string
	OK        bool
	Output    string // a result, or the reason of the failure
}

// Posted is the state of a turn after results were posted.
type Posted struct {
	Session uuid.UUID
	Turn    uuid.UUID
	Stored  []string // calls whose results are new; the other calls had these results before
	Open    []string // calls for whose results the turn still waits
	Resumed bool     // the turn was queued; the caller inserts its job
	// Question is the newest of the questions that wait, or waited, for the calls; uuid.Nil: the
	// turn has not asked yet.
	Question uuid.UUID
}

// AwaitCalls lets the results of calls of a turn be posted from now on. kind is that of the
// question that waits for them; question is uuid.Nil while the turn does not wait.
func (s *Store) AwaitCalls(ctx context.Context, t Turn, kind event.Input, ids ...string) error {
	return awaitCalls(ctx, s.q, db.ToolRepliesAwaitParams{WorkspaceID: t.WorkspaceID, SessionID: t.SessionID, TurnID: t.ID,
		Kind: string(kind), Ids: ids})
}

func awaitCalls(ctx context.Context, q *db.Queries, p db.ToolRepliesAwaitParams) error {
	if err := q.ToolRepliesAwait(ctx, p); err != nil {
		return fmt.Errorf("let results be posted: %w", err)
	}
	return nil
}

// AwaitResults lets the results for which a question waits be posted. If all of them were posted
// before, it answers the question and queues the turn; the caller inserts the job.
func (tx *Tx) AwaitResults(ctx context.Context, turn uuid.UUID, q event.Question, calls []event.PendingCall) (resumed bool, err error) {
	id, kind := q.Wait()
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.ToolUseID
	}
	err = awaitCalls(ctx, tx.q, db.ToolRepliesAwaitParams{WorkspaceID: tx.row.WorkspaceID, SessionID: tx.row.ID, TurnID: turn,
		Kind: string(kind), ApprovalID: &id, Ids: ids})
	if err != nil {
		return false, err
	}
	_, resumed, err = tx.resumeWithResults(ctx, turn, id, kind, "")
	return resumed, err
}

// resumeWithResults answers a question if every one of its calls has a result.
func (tx *Tx) resumeWithResults(
	ctx context.Context, turn, question uuid.UUID, kind event.Input, key string,
) (open []string, resumed bool, err error) {
	if open, err = tx.q.ToolRepliesOpen(ctx, question); err != nil {
		return nil, false, fmt.Errorf("look for calls without a result: %w", err)
	}
	if len(open) > 0 {
		return open, false, nil
	}
	resumed, err = tx.DecideQuestion(ctx, turn, event.Decision{ApprovalID: question, What: kind, Outcome: event.Provided, Key: key})
	if err == nil && !resumed {
		err = callExpiredError()
	}
	return nil, resumed, err
}

// CallTurn returns the session and the turn of a call whose result can be posted, or
// TOOL_CALL_NOT_FOUND.
func (s *Store) CallTurn(ctx context.Context, workspace uuid.UUID, toolUseID string) (session, turn uuid.UUID, err error) {
	rows, err := s.q.ToolRepliesGet(ctx, workspace, []string{toolUseID})
	if err != nil {
		return uuid.Nil, uuid.Nil, fmt.Errorf("look for a call: %w", err)
	}
	if len(rows) == 0 {
		return uuid.Nil, uuid.Nil, callNotFound(toolUseID)
	}
	return rows[0].SessionID, rows[0].TurnID, nil
}

// ChooseOptions changes some of the options of a turn, for its next steps.
func (tx *Tx) ChooseOptions(ctx context.Context, turn uuid.UUID, options json.RawMessage) error {
	if err := tx.q.TurnChoose(ctx, turn, options); err != nil {
		return fmt.Errorf("change the options of a turn: %w", err)
	}
	return nil
}

// OwnCalls returns which of the calls are calls of the caller's own tools in a session; pending
// reports that a turn waits for the result.
func (s *Store) OwnCalls(ctx context.Context, workspace, session uuid.UUID, ids []string) (pending map[string]bool, err error) {
	rows, err := s.q.ToolRepliesGet(ctx, workspace, ids)
	if err != nil {
		return nil, fmt.Errorf("look for calls: %w", err)
	}
	pending = make(map[string]bool)
	for _, row := range rows {
		if row.SessionID == session && row.Kind == string(event.InputTool) {
			pending[row.ToolUseID] = row.Sha256 == nil && row.Asked == "pending" && !row.Overdue
		}
	}
	return pending, nil
}

// PostResults stores the results of calls of one turn, all or none, and queues the turn if it has
// waited for the last of them. kind is that of the question that waits for them. The first result
// of a call stands: an equal one is not an error.
func (tx *Tx) PostResults(ctx context.Context, kind event.Input, key string, results []ToolResult) (p Posted, err error) {
	ids := make([]string, len(results))
	for i, r := range results {
		ids[i] = r.ToolUseID
	}
	rows, err := tx.q.ToolRepliesGet(ctx, tx.row.WorkspaceID, ids)
	if err != nil {
		return p, fmt.Errorf("look for calls: %w", err)
	}
	question := uuid.Nil
	for i, r := range results {
		at := slices.IndexFunc(rows, func(row db.ToolRepliesGetRow) bool {
			return row.ToolUseID == r.ToolUseID && row.SessionID == tx.row.ID && row.Kind == string(kind) && (i == 0 || row.TurnID == p.Turn)
		})
		if at < 0 {
			return p, callNotFound(r.ToolUseID)
		}
		row := rows[at]
		p.Session, p.Turn = row.SessionID, row.TurnID
		stored, err := tx.postResult(ctx, &rows[at], key, r)
		if err != nil {
			return p, err
		}
		if id := row.ApprovalID; id != nil && bytes.Compare(id[:], p.Question[:]) > 0 { // ids are in the order of time
			p.Question = *id
		}
		if stored {
			p.Stored = append(p.Stored, r.ToolUseID)
		}
		if row.Asked == "pending" && !row.Overdue {
			question = *row.ApprovalID
		}
	}
	if question != uuid.Nil {
		p.Open, p.Resumed, err = tx.resumeWithResults(ctx, p.Turn, question, kind, key)
	}
	return p, err
}

// postResult stores the result of a call, also in row, because the call may be listed twice; ok is
// false if the call had the same result before.
func (tx *Tx) postResult(ctx context.Context, row *db.ToolRepliesGetRow, key string, r ToolResult) (ok bool, err error) {
	r.Output = event.Plain(r.Output)
	sum := sha256.Sum256(fmt.Appendf(nil, "%t %s", r.OK, r.Output))
	if row.Sha256 != nil {
		if bytes.Equal(row.Sha256, sum[:]) {
			return false, nil
		}
		return false, &fault.Error{Code: fault.ToolCallAnswered, Param: "tool_use_id",
			Message: fmt.Sprintf("The call %q has another result already. The first result stands.", r.ToolUseID)}
	}
	if err := tx.checkAwaited(ctx, *row); err != nil {
		return false, err
	}
	n, err := tx.q.ToolReplyStore(ctx, sum[:], nilIfEmpty(key), tx.row.WorkspaceID, r.ToolUseID)
	if err != nil || n == 0 {
		return false, err
	}
	row.Sha256 = sum[:]
	_, err = tx.Append(ctx, row.TurnID, event.ToolReply{ToolUseID: r.ToolUseID, OK: r.OK, Output: r.Output, Key: key})
	return true, err
}

// checkAwaited checks that the turn can still use the result of a call: it waits for the result, or
// the call has begun and has no result.
func (tx *Tx) checkAwaited(ctx context.Context, row db.ToolRepliesGetRow) error {
	switch {
	case !State(row.State).IsActive():
		return &fault.Error{Code: fault.ToolCallAnswered, Param: "tool_use_id",
			Message: fmt.Sprintf("The turn of the call %q has ended; nothing waits for its result any more.", row.ToolUseID)}
	case row.Asked == "pending" && !row.Overdue:
		return nil
	case row.ApprovalID != nil:
		return callExpiredError()
	}
	log, err := tx.q.TurnEvents(ctx, tx.row.ID, row.TurnID, row.CreatedAt.Add(-eventlog.Skew))
	if err != nil {
		return fmt.Errorf("read the turn's log: %w", err)
	}
	for _, r := range log {
		body, err := event.Decode(event.Kind(r.Kind), r.Data)
		if err != nil {
			return err
		}
		if res, ok := body.(event.ToolResult); ok && res.ToolUseID == row.ToolUseID {
			return callExpiredError()
		}
	}
	return nil
}

func callNotFound(id string) *fault.Error {
	return &fault.Error{Code: fault.ToolCallNotFound, Param: "tool_use_id",
		Message: fmt.Sprintf("No call %.80q waits for a result here. Use a tool_use_id as the turn or the request has it.", id)}
}

func callExpiredError() *fault.Error {
	return &fault.Error{Code: fault.ToolCallExpired, Param: "tool_use_id",
		Message: "The tool call has expired. The model received a failed result instead."}
}

// Replied is who posted the result of a call.
type Replied struct {
	Key string // id of the API key or the member; "": it is not known
	At  time.Time
}

// Replies returns who posted the results of a session's calls, by the calls.
func (s *Store) Replies(ctx context.Context, workspace, session uuid.UUID) (map[string]Replied, error) {
	rows, err := s.q.ToolRepliesGiven(ctx, workspace, session)
	if err != nil {
		return nil, fmt.Errorf("read the replies of calls: %w", err)
	}
	by := make(map[string]Replied, len(rows))
	for _, r := range rows {
		by[r.ToolUseID] = Replied{r.KeyID, r.RepliedAt}
	}
	return by, nil
}
