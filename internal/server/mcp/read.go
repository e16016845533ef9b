package mcp

import (
	"context"

	"github.com/parley-server/parley/internal/server/mcp/tools"
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

func (s *api) listSkills(ctx context.Context, c *tools.Call) (tools.Result, error) {
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	all, err := s.Skills.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return tools.Result{}, err
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
	return tools.Result{Value: map[string]any{"skills": active}}, nil
}

func (s *api) listSessions(ctx context.Context, c *tools.Call) (tools.Result, error) {
	a := c.Args
	var q session.SummaryQuery
	q.Limit, q.Cursor = tools.Page(a, 20)
	if caller := a.String("caller_id", 255); caller != "" {
		q.CallerID = &caller
	}
	if user := a.String("user", 256); user != "" {
		q.User = &user
	}
	q.Search = a.String("q", 200)
	q.Status = session.Status(a.Enum("status", session.Statuses...))
	q.CreatedAfter, q.CreatedBefore = a.Time("created_after"), a.Time("created_before")
	q.OldestFirst = a.Enum("order", "desc", "asc") == "asc"
	if err := a.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	page, err := s.Sessions.Summaries(ctx, c.Caller.Workspace.ID, q)
	return tools.Result{Value: page}, err
}

func (s *api) getSession(ctx context.Context, c *tools.Call) (tools.Result, error) {
	id := c.Args.RequiredID("session_id")
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	sum, err := s.Sessions.Summary(ctx, c.Caller.Workspace.ID, id)
	return tools.Result{Value: sum}, err
}

func (s *api) getMessages(ctx context.Context, c *tools.Call) (tools.Result, error) {
	a := c.Args
	id := a.RequiredID("session_id")
	var q session.MessageQuery
	q.Limit, q.Cursor = tools.Page(a, 50)
	q.NewestFirst = a.Enum("order", "asc", "desc") == "desc"
	if err := a.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	page, err := s.Sessions.Messages(ctx, c.Caller.Workspace.ID, id, q)
	if err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Value: page}, s.AttachFiles(ctx, c.Base, c.Caller.Workspace.ID, page.Data)
}
