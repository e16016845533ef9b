package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/workspace"
)

// agentView is an agent with its published version, without the definition of that.
type agentView struct {
	Name        string    `json:"name"`
	Default     bool      `json:"default"`
	Published   int       `json:"published_version"`
	Newest      int       `json:"newest_version"`
	Draft       bool      `json:"draft"`
	Revision    int64     `json:"revision"` // the ETag
	Model       *string   `json:"model"`
	Author      string    `json:"author"`
	Note        string    `json:"note"`
	PublishedAt time.Time `json:"published_at"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func viewAgent(s agent.Summary) agentView {
	return agentView{s.Name, s.Default, s.Published, s.Newest, s.HasDraft, s.Revision, s.Model, s.Author, s.Note,
		s.PublishedAt.UTC(), s.CreatedAt.UTC(), s.UpdatedAt.UTC()}
}

func (s *api) listAgents(ctx context.Context, c *call) (any, error) {
	list, err := s.Agents.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	views := make([]agentView, len(list))
	for i, a := range list {
		views[i] = viewAgent(a)
	}
	return paged(c, views, func(a agentView) string {
		if a.Default {
			return "0"
		}
		return "1" + a.Name
	})
}

func (s *api) createAgent(ctx context.Context, c *call) (any, error) {
	name, note, d := c.body.RequiredText("name"), c.note(), c.definition()
	if err := s.acceptDefinition(ctx, c, d); err != nil {
		return nil, err
	}
	a, err := s.Agents.Create(ctx, agent.Edit{Workspace: c.Caller.Workspace.ID, Name: name, Author: c.Caller.By()}, d, note)
	if err != nil {
		return nil, err
	}
	return s.summarizeAgent(ctx, a)
}

func (s *api) getAgent(ctx context.Context, c *call) (any, error) {
	a, err := s.findAgent(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.tagAgent(ctx, a)
}

// putAgent publishes a definition in one step, without a draft.
func (s *api) putAgent(ctx context.Context, c *call) (any, error) {
	note, d := c.note(), c.definition()
	if err := s.acceptDefinition(ctx, c, d); err != nil {
		return nil, err
	}
	e, err := c.agentEdit()
	if err != nil {
		return nil, err
	}
	a, err := s.Agents.PublishDefinition(ctx, e, d, note)
	if err != nil {
		return nil, c.agentError(err)
	}
	return s.tagAgent(ctx, a)
}

func (s *api) deleteAgent(ctx context.Context, c *call) (any, error) {
	e, err := c.agentEdit()
	if err != nil {
		return nil, err
	}
	return deleted{e.Name, true}, c.agentError(s.Agents.Delete(ctx, e))
}

// publishAgent publishes the draft.
func (s *api) publishAgent(ctx context.Context, c *call) (any, error) {
	note := c.note()
	e, err := c.agentEdit()
	if err != nil {
		return nil, err
	}
	a, err := s.Agents.Publish(ctx, e, note)
	if err != nil {
		return nil, c.agentError(err)
	}
	return s.summarizeAgent(ctx, a)
}

// rollbackAgent publishes an older version again.
func (s *api) rollbackAgent(ctx context.Context, c *call) (any, error) {
	note := c.note()
	c.body.Require("version")
	version := c.body.Int("version", 1, 1, 1<<30)
	e, err := c.agentEdit()
	if err != nil {
		return nil, err
	}
	a, err := s.Agents.Rollback(ctx, e, version, note)
	if err != nil {
		return nil, c.agentError(err)
	}
	return s.summarizeAgent(ctx, a)
}

// summarizeAgent returns an agent with its published version.
func (s *api) summarizeAgent(ctx context.Context, a agent.Agent) (agentView, error) {
	v, err := s.Agents.Version(ctx, a, agent.Published)
	if err != nil {
		return agentView{}, err
	}
	return viewAgent(agent.Summary{Agent: a, Published: v.Number, Model: v.Model, Author: v.Author, Note: v.Note,
		PublishedAt: v.CreatedAt}), nil
}

func (s *api) tagAgent(ctx context.Context, a agent.Agent) (any, error) {
	view, err := s.summarizeAgent(ctx, a)
	return tagged{view, tagRevision(a)}, err
}

func tagRevision(a agent.Agent) string { return strconv.FormatInt(a.Revision, 10) }

// findAgent returns the agent in the path.
func (s *api) findAgent(ctx context.Context, c *call) (agent.Agent, error) {
	if err := c.Err(); err != nil {
		return agent.Agent{}, err
	}
	a, err := s.Agents.Find(ctx, c.Caller.Workspace.ID, c.PathValue("agent"))
	return a, c.agentError(err)
}

// acceptDefinition rejects an invalid body, and a model that no provider has.
func (s *api) acceptDefinition(ctx context.Context, c *call, d agent.Definition) error {
	if err := c.Err(); err != nil {
		return err
	}
	change := workspace.Change{Model: d.Model}
	if d.Fallbacks != nil {
		change.FallbackModels = &d.Fallbacks
	}
	return s.CheckModel(ctx, c.Caller.Workspace.ID, change)
}

// agentEdit names the agent in the path for a change, with the revision in If-Match.
func (c *call) agentEdit() (agent.Edit, error) {
	e, tag := agent.Edit{Workspace: c.Caller.Workspace.ID, Name: c.PathValue("agent"), Author: c.Caller.By()}, c.expected()
	if err := c.Err(); err != nil || tag == "" {
		return e, err
	}
	revision, err := strconv.ParseInt(tag, 10, 64)
	if err != nil || revision < 1 {
		return e, stale("The agent")
	}
	e.Revision = revision
	return e, nil
}

// agentError reports an agent or a version that does not exist like other objects.
func (c *call) agentError(err error) error {
	if isCode(err, fault.UnknownAgent) || isCode(err, fault.UnknownAgentVersion) {
		return asNotFound(err)
	}
	return err
}

// versionSummary is a version in a list.
type versionSummary struct {
	Version   int       `json:"version"`
	Model     *string   `json:"model"`
	Author    string    `json:"author"`
	Note      string    `json:"note"`
	CreatedAt time.Time `json:"created_at"`
}

// listAgentVersions lists the published versions, newest first. A cursor is the number after which
// a page begins.
func (s *api) listAgentVersions(ctx context.Context, c *call) (any, error) {
	limit, before := c.query.Limit(usualPage), 0
	after, err := c.pageKey()
	if err != nil {
		return nil, err
	}
	if after != "" {
		if before, err = strconv.Atoi(after); err != nil || before < 1 {
			return nil, foreignCursor()
		}
	}
	a, err := s.findAgent(ctx, c)
	if err != nil {
		return nil, err
	}
	list, err := s.Agents.Versions(ctx, a, before, limit+1)
	if err != nil {
		return nil, err
	}
	page := session.Page[versionSummary]{Data: []versionSummary{}}
	for i, v := range list {
		if i == limit {
			page.HasMore, page.NextCursor = true, new(cursorAt(strconv.Itoa(list[limit-1].Number)))
			break
		}
		page.Data = append(page.Data, versionSummary{v.Number, v.Model, v.Author, v.Note, v.CreatedAt.UTC()})
	}
	return listed{page}, nil
}
