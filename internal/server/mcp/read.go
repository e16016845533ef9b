package mcp

import (
	"context"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/skill"
)

// offered is a skill that clients can call.
type offered struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Version     int           `json:"version"`
	Inputs      []skill.Input `json:"inputs,omitempty"` // absent: anything
}

func (s *api) listSkills(ctx context.Context, c *call) (result, error) {
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	all, err := s.Skills.List(ctx, c.caller.Workspace.ID)
	if err != nil {
		return result{}, err
	}
	active := []offered{}
	for _, e := range all {
		if e.Status != skill.Active {
			continue
		}
		o := offered{Name: e.Name, Description: e.Description, Version: e.Version}
		if e.Contract != nil {
			o.Inputs = e.Contract.Inputs
		}
		active = append(active, o)
	}
	return result{value: map[string]any{"skills": active}}, nil
}

func (s *api) listSessions(ctx context.Context, c *call) (result, error) {
	a := c.args
	var q session.SummaryQuery
	q.Limit, q.Cursor = parsePage(a, 20)
	if caller := a.String("caller_id", 255); caller != "" {
		q.CallerID = &caller
	}
	q.Status = session.Status(a.Enum("status", string(session.NotStarted), string(session.Thinking), string(session.Done)))
	q.CreatedAfter = a.Time("created_after")
	q.OldestFirst = a.Enum("order", "desc", "asc") == "asc"
	if err := a.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	page, err := s.Sessions.Summaries(ctx, c.caller.Workspace.ID, q)
	return result{value: page}, err
}

func (s *api) getSession(ctx context.Context, c *call) (result, error) {
	id := c.args.RequiredID("session_id")
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	sum, err := s.Sessions.Summary(ctx, c.caller.Workspace.ID, id)
	return result{value: sum}, err
}

func (s *api) getMessages(ctx context.Context, c *call) (result, error) {
	a := c.args
	id := a.RequiredID("session_id")
	var q session.MessageQuery
	q.Limit, q.Cursor = parsePage(a, 50)
	q.NewestFirst = a.Enum("order", "asc", "desc") == "desc"
	if err := a.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	page, err := s.Sessions.Messages(ctx, c.caller.Workspace.ID, id, q)
	if err != nil {
		return result{}, err
	}
	return result{value: page}, s.AttachFiles(ctx, c.base, c.caller.Workspace.ID, page.Data)
}

func (s *api) listPending(ctx context.Context, c *call) (result, error) {
	a := c.args
	q := session.ApprovalQuery{Status: "pending"}
	q.Limit, q.Cursor = parsePage(a, 20)
	if a.Raw("session_id") != nil {
		q.Session = new(a.RequiredID("session_id"))
	}
	if err := a.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	page, err := s.Sessions.Approvals(ctx, c.caller.Workspace.ID, q)
	for i := range page.Data {
		page.Data[i].Request = withAbsoluteURLs(c.base, page.Data[i].Request)
	}
	return result{value: page}, err
}
