package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
)

// ErrNoTurn is returned for a turn that is not in the workspace.
var ErrNoTurn = errors.New("the workspace has no such turn")

// View is a turn with its messages.
type View struct {
	Turn     Turn
	CallerID string          // of the session; "": none
	Asked    Message         // the user's
	Answer   Message         // the agent's; empty until the turn has ended
	Question json.RawMessage // data of the input_required or tool_required event of a waiting turn; nil: the turn does not wait
}

// Turn returns a turn of a workspace, or ErrNoTurn.
func (s *Store) Turn(ctx context.Context, workspace, id uuid.UUID) (View, error) {
	row, err := s.q.TurnView(ctx, workspace, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return View{}, ErrNoTurn
	}
	if err != nil {
		return View{}, fmt.Errorf("read turn: %w", err)
	}
	return viewOf(db.TurnViewsRow(row)), nil
}

// ViewQuery narrows the list of a workspace's turns.
type ViewQuery struct {
	Session *uuid.UUID // nil: all sessions
	States  []State    // nil: any
	Begun   *bool      // a worker has claimed it before, or has not; nil: both
	Since   *time.Time // only states since then; nil: all
	Limit   int        // at least 1
	Cursor  string     // "": the first page
}

// maxCounted is the number of turns up to which a list counts: counting a million takes a quarter
// of a second.
const maxCounted = 10_000

// Turns returns one page of a workspace's turns, the latest change of state first, and the number
// of turns on all pages, at most 10,000. A cursor that this list did not make is INVALID_CURSOR.
func (s *Store) Turns(ctx context.Context, workspace uuid.UUID, q ViewQuery) (p Page[View], total int64, err error) {
	at, id, err := decodeTimeCursor(place{list: turnsList}, q.Cursor, workspace)
	if err != nil {
		return p, 0, err
	}
	var states []string
	for _, state := range q.States {
		states = append(states, string(state))
	}
	var only *string
	if len(states) == 1 {
		only = &states[0]
	}
	rows, err := s.lists.TurnViews(ctx, db.TurnViewsParams{WorkspaceID: workspace, SessionID: q.Session, State: only, States: states,
		Begun: q.Begun,
		Since: q.Since, BeforeAt: at, BeforeID: id, N: int32(q.Limit) + 1})
	if err != nil {
		return p, 0, fmt.Errorf("list turns: %w", err)
	}
	total, err = s.lists.TurnViewsCount(ctx, db.TurnViewsCountParams{WorkspaceID: workspace, SessionID: q.Session, States: states,
		Begun: q.Begun,
		Since: q.Since, Most: maxCounted})
	if err != nil {
		return p, 0, fmt.Errorf("count turns: %w", err)
	}
	items := make([]View, len(rows))
	for i, r := range rows {
		items[i] = viewOf(r)
	}
	return trimPage(items, q.Limit, func(last View) string {
		return place{turnsList, false, last.Turn.StateAt.UnixMicro(), last.Turn.ID}.encodeCursor(workspace)
	}), total, nil
}

func viewOf(r db.TurnViewsRow) View {
	v := View{Turn: turnOf(r.Turn), Asked: messageOf(r.Message), Answer: messageOf(r.Message_2), Question: r.Question}
	if r.CallerID != nil {
		v.CallerID = *r.CallerID
	}
	if event.QuestionKind(r.Question) == event.InputResult { // for callers a server's tool is still running
		v.Turn.State, v.Question = Running, nil
	}
	return v
}
