package a2a

import (
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
)

// The limits of a page.
const (
	usualPage = 50
	maxPage   = 100
)

// listed is a page of tasks.
type listed struct {
	Tasks         []*task.Task `json:"tasks"`
	NextPageToken string       `json:"nextPageToken"`
	PageSize      int          `json:"pageSize"`
	TotalSize     int64        `json:"totalSize"`
}

// list returns a page of the workspace's tasks, the latest change first.
func list(c *call.Call) (any, error) {
	q, s, known, err := parseQuery(c)
	if err == nil {
		err = c.Params.Err()
	}
	if err != nil {
		return nil, err
	}
	if !known {
		return listed{Tasks: []*task.Task{}, PageSize: q.Limit}, nil
	}
	ctx, stop := c.BriefContext()
	defer stop()
	page, total, err := c.Sessions.Turns(ctx, c.Workspace(), q)
	if err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, len(page.Data))
	for i, v := range page.Data {
		ids[i] = v.Turn.ID
	}
	out := listed{Tasks: make([]*task.Task, len(page.Data)), PageSize: q.Limit, TotalSize: total}
	if page.NextCursor != nil {
		out.NextPageToken = *page.NextCursor
	}
	files, err := c.Files.OfTurns(ctx, c.Workspace(), ids)
	if err != nil {
		return nil, err
	}
	for i, v := range page.Data {
		out.Tasks[i] = task.Of(c.Base, v, files[v.Turn.ID], s)
	}
	return out, nil
}

// parseQuery parses the filters of a list. known is false if nothing can match them.
func parseQuery(c *call.Call) (q session.ViewQuery, s task.Shape, known bool, err error) {
	p := c.Params
	s = task.Shape{Modes: task.Whole.Modes, History: p.Int("historyLength", 0, 0, math.MaxInt32), Artifacts: p.Bool("includeArtifacts")}
	q.Limit = p.Int("pageSize", usualPage, 1, maxPage)
	q.Cursor = p.String("pageToken", 1000)
	if text := p.String("statusTimestampAfter", 64); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			p.Add(fault.Violation{Param: p.Pointer("statusTimestampAfter"), Rule: "format",
				Message: "statusTimestampAfter is not a time like 2026-01-31T12:00:00.000Z.", Expected: "date-time"})
		}
		q.Since = &at
	}
	known = true
	if text := p.String("contextId", 255); text != "" && p.Err() == nil {
		id, ok := request.ID(text)
		if !ok || id.Version() != 7 {
			if id, ok, err = c.CallerSession(c.R.Context(), c.Caller, task.ClientContext(c.Caller.Key, text)); err != nil {
				return q, s, false, err
			}
		}
		known, q.Session = ok, &id // another text names no context
	}
	if text := p.String("status", 64); text != "" {
		known = states(c, &q, task.State(text)) && known
	}
	return q, s, known, nil
}

// states restricts a list to a state. ok is false for a state that no task ever has.
func states(c *call.Call, q *session.ViewQuery, s task.State) (ok bool) {
	switch s {
	case task.Submitted:
		q.States, q.Begun = []session.State{session.LinedUp, session.Queued}, new(false)
	case task.Working:
		q.States, q.Begun = []session.State{session.Queued, session.Running}, new(true)
	case task.InputRequired:
		q.States = []session.State{session.Waiting}
	case task.Completed:
		q.States = []session.State{session.Completed}
	case task.Failed:
		q.States = []session.State{session.Failed}
	case task.Canceled:
		q.States = []session.State{session.Canceled}
	case "TASK_STATE_UNSPECIFIED":
	case "TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED":
		return false
	default:
		all := []string{string(task.Submitted), string(task.Working), string(task.Completed), string(task.Failed), string(task.Canceled),
			string(task.InputRequired), "TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED"}
		c.Params.Add(fault.Violation{Param: "/status", Rule: "enum", Message: "status can be " + strings.Join(all, ", ") + "."})
	}
	return true
}
