// Package agent owns the agents of workspaces and their versions.
//
// A version is never changed. An agent runs its published version; a draft becomes the next version
// when it is published, and an older version is published again as a new one. A turn records the
// version that it runs with, so what an agent was at any time can be read later. Two administrators
// who edit the same agent lose nothing: a change that names an older revision is rejected.
//
// The published version of the default agent is also in the columns of workspaces, for servers of
// the release before; triggers keep both equal.
package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// Agent is an agent of a workspace.
type Agent struct {
	ID        uuid.UUID
	Name      string
	Default   bool  // it answers messages that name no agent
	Newest    int   // number of the last version
	HasDraft  bool  // see Store.Version
	Revision  int64 // raised by each change
	CreatedAt time.Time
	UpdatedAt time.Time

	published, draft *uuid.UUID
	workspace        uuid.UUID
}

func agentOf(r db.Agent) Agent {
	return Agent{ID: r.ID, Name: r.Name, Default: r.IsDefault, Newest: int(r.Newest), HasDraft: r.DraftID != nil, Revision: r.Revision,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, published: r.PublishedID, draft: r.DraftID, workspace: r.WorkspaceID}
}

// Version is what an agent is or was: a published version or a saved draft.
type Version struct {
	Definition
	ID        uuid.UUID
	Number    int    // 0: a draft
	Author    string // "cli:anna", "key:7F3kQ2xY"
	Note      string
	CreatedAt time.Time
}

// Store reads and writes agents.
type Store struct {
	// Accept rejects a definition that no server could run as it is meant; nil accepts every one. Each
	// version is checked when it is saved and when it is published, also again.
	Accept func(Definition) error

	pool *pgxpool.Pool
	q    *db.Queries
}

// New makes a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// Summary is an agent in a list, with the published version as far as lists show it.
type Summary struct {
	Agent
	Published   int
	Model       *string
	Author      string
	Note        string
	PublishedAt time.Time
}

// List returns the agents of a workspace, the default agent first.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Summary, error) {
	rows, err := s.q.AgentsList(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	list := make([]Summary, len(rows))
	for i, r := range rows {
		list[i] = Summary{Agent: agentOf(r.Agent), Published: int(r.Number), Model: r.Model, Author: r.Author, Note: r.Note,
			PublishedAt: r.PublishedAt}
	}
	return list, nil
}

// Find returns an agent by its name, "" for the default agent, or fails with UNKNOWN_AGENT.
func (s *Store) Find(ctx context.Context, workspace uuid.UUID, name string) (Agent, error) {
	row, err := s.q.AgentFind(ctx, workspace, nullable(name))
	if errors.Is(err, pgx.ErrNoRows) {
		return Agent{}, s.unknownAgent(ctx, workspace, name)
	}
	if err != nil {
		return Agent{}, fmt.Errorf("find agent: %w", err)
	}
	return agentOf(row), nil
}

// Version returns a version of an agent, or fails with UNKNOWN_AGENT_VERSION.
func (s *Store) Version(ctx context.Context, a Agent, which Which) (Version, error) {
	return readVersion(ctx, s.q, a, which)
}

func readVersion(ctx context.Context, q *db.Queries, a Agent, which Which) (Version, error) {
	var row db.AgentVersion
	err := pgx.ErrNoRows
	switch {
	case which == Published && a.published != nil:
		row, err = q.AgentVersionByID(ctx, *a.published)
	case which == Draft && a.draft != nil:
		row, err = q.AgentVersionByID(ctx, *a.draft)
	case which > 0:
		row, err = q.AgentVersionByNumber(ctx, a.ID, int32(which))
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return Version{}, unknownVersion(a, which)
	}
	if err != nil {
		return Version{}, fmt.Errorf("read version of agent: %w", err)
	}
	return versionOf(row)
}

// ModelOf returns the model of a version, uuid.Nil for the one of the default agent that runs; "" is
// the service's own.
func (s *Store) ModelOf(ctx context.Context, on db.DBTX, workspace, version uuid.UUID) (string, error) {
	var id *uuid.UUID
	if version != uuid.Nil {
		id = &version
	}
	name, err := db.New(on).AgentModel(ctx, workspace, id)
	if err != nil {
		return "", fmt.Errorf("read the model of an agent: %w", err)
	}
	return name, nil
}

// Resolve returns the id of the version that a turn runs with.
func (s *Store) Resolve(ctx context.Context, workspace uuid.UUID, name string, which Which) (uuid.UUID, error) {
	a, err := s.Find(ctx, workspace, name)
	switch {
	case err != nil:
		return uuid.Nil, err
	case which == Published && a.published != nil:
		return *a.published, nil
	case which == Draft && a.draft != nil:
		return *a.draft, nil
	}
	v, err := s.Version(ctx, a, which)
	return v.ID, err
}

// Versions returns a page of an agent's published versions, newest first, without their
// instructions. before is the number after the page; 0: it begins with the newest.
func (s *Store) Versions(ctx context.Context, a Agent, before, limit int) ([]Version, error) {
	if before == 0 {
		before = a.Newest + 1
	}
	rows, err := s.q.AgentVersions(ctx, a.ID, int32(before), int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list versions of agent: %w", err)
	}
	list := make([]Version, len(rows))
	for i, r := range rows {
		list[i] = Version{ID: r.ID, Number: int(r.Number), Definition: Definition{Model: r.Model}, Author: r.Author, Note: r.Note,
			CreatedAt: r.CreatedAt}
	}
	return list, nil
}

// maxCandidates is the maximum number of names that an error suggests.
const maxCandidates = 5

func (s *Store) unknownAgent(ctx context.Context, workspace uuid.UUID, name string) error {
	list, err := s.List(ctx, workspace)
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.Name
	}
	e := fault.New(fault.UnknownAgent, "No agent named %q.", text.Truncate(name, 100))
	e.Param = "agent"
	if e.Detail.Candidates = search.Nearest(name, names, maxCandidates); len(e.Detail.Candidates) > 0 {
		e.Message += fmt.Sprintf(" Did you mean %q?", e.Detail.Candidates[0])
	} else {
		e.Detail.Candidates = names[:min(len(names), maxCandidates)]
	}
	return e
}

func unknownVersion(a Agent, which Which) error {
	e := fault.New(fault.UnknownAgentVersion, "The agent %s has no version %d; its versions are 1 to %d.", a.Name, which, a.Newest)
	switch {
	case which == Draft:
		e.Message = fmt.Sprintf("The agent %s has no draft. Edit it to make one.", a.Name)
	case a.Newest == 1:
		e.Message = fmt.Sprintf("The agent %s has no version %d; its only version is 1.", a.Name, which)
	}
	e.Param = "agent_version"
	for n := a.Newest; n > 0 && len(e.Detail.Candidates) < maxCandidates; n-- {
		e.Detail.Candidates = append(e.Detail.Candidates, fmt.Sprint(n))
	}
	return e
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// AcceptModel rejects a model for the default agent that Accept rejects; "" is the service's own. A
// change of the workspace's model is published as the next version, without Accept.
func (s *Store) AcceptModel(ctx context.Context, workspace uuid.UUID, model string) error {
	a, err := s.Find(ctx, workspace, "")
	if err != nil || s.Accept == nil {
		return err
	}
	v, err := s.Version(ctx, a, Published)
	if err != nil {
		return err
	}
	v.Model = nullable(model)
	return s.Accept(v.Definition)
}
