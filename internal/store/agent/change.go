package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/text"
)

// Edit names the agent that a change is about, and what its administrator has read of it.
type Edit struct {
	Workspace uuid.UUID
	Name      string // "": the default agent
	Revision  int64  // Agent.Revision as it was read; 0: any
	Author    string // unless the context has an actor: "cli:anna"
}

// Create makes an agent whose first version is d. A name in use is an INVALID_REQUEST.
func (s *Store) Create(ctx context.Context, e Edit, d Definition, note string) (a Agent, err error) {
	own, err := ownTools(ctx, s.q, e.Workspace)
	if err != nil {
		return a, err
	}
	vs := append(d.Violations(own), noteViolations(note)...)
	if !isName(e.Name) {
		vs = append(vs, fault.Violation{Param: "/name", Rule: "format",
			Message: "An agent's name is 1 to 63 characters of a-z, 0-9 and -, and begins with a letter or a digit."})
	}
	if len(vs) > 0 {
		return a, fault.Invalid(vs...)
	}
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := q.AgentInsert(ctx, e.Workspace, e.Name)
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.Invalid(fault.Violation{Param: "/name", Rule: "unique", Message: fmt.Sprintf("There is an agent %q already.", e.Name)})
		}
		if err != nil {
			return fmt.Errorf("create agent: %w", err)
		}
		a, err = s.publish(ctx, q, agentOf(row), d, false, e.Author, note)
		return err
	})
	return a, err
}

// SaveDraft makes what edit returns the draft of an agent. edit receives the draft, or without one
// the published version.
func (s *Store) SaveDraft(ctx context.Context, e Edit, edit func(Definition) (Definition, error)) (a Agent, err error) {
	err = s.change(ctx, e, func(q *db.Queries, held Agent) error {
		from := Published
		if held.HasDraft {
			from = Draft
		}
		v, err := readVersion(ctx, q, held, from)
		if err != nil {
			return err
		}
		d, err := edit(v.Definition)
		if err != nil {
			return err
		}
		own, err := ownTools(ctx, q, e.Workspace)
		if err != nil {
			return err
		}
		if vs := d.Violations(own); len(vs) > 0 {
			return fault.Invalid(vs...)
		}
		if a = held; d.equal(v.Definition) {
			return nil
		}
		row, err := s.insertVersion(ctx, q, held, d, 0, e.Author, "")
		if err != nil {
			return err
		}
		a, err = setDraft(ctx, q, held, &row.ID)
		return err
	})
	return a, err
}

// DropDraft removes the draft of an agent.
func (s *Store) DropDraft(ctx context.Context, e Edit) (a Agent, err error) {
	err = s.change(ctx, e, func(q *db.Queries, held Agent) (err error) {
		if a = held; held.HasDraft {
			a, err = setDraft(ctx, q, held, nil)
		}
		return err
	})
	return a, err
}

// Publish makes the draft of an agent its next version, which runs from the next message on.
func (s *Store) Publish(ctx context.Context, e Edit, note string) (Agent, error) {
	return s.publishAs(ctx, e, Draft, note)
}

// Rollback publishes an earlier version again, as the next one. A draft stays.
func (s *Store) Rollback(ctx context.Context, e Edit, number int, note string) (Agent, error) {
	if number < 1 {
		return Agent{}, fault.Invalid(fault.Violation{Param: "/version", Rule: "minimum", Message: "A version is a number from 1.", Expected: 1})
	}
	return s.publishAs(ctx, e, Which(number), note)
}

func (s *Store) publishAs(ctx context.Context, e Edit, which Which, note string) (a Agent, err error) {
	if vs := noteViolations(note); len(vs) > 0 {
		return a, fault.Invalid(vs...)
	}
	err = s.change(ctx, e, func(q *db.Queries, held Agent) error {
		v, err := readVersion(ctx, q, held, which)
		if err == nil {
			a, err = s.publish(ctx, q, held, v.Definition, which == Draft, e.Author, note)
		}
		return err
	})
	return a, err
}

// PublishDefinition makes a definition the next version of an agent, unless it is the published
// one. A draft stays.
func (s *Store) PublishDefinition(ctx context.Context, e Edit, d Definition, note string) (a Agent, err error) {
	own, err := ownTools(ctx, s.q, e.Workspace)
	if err != nil {
		return a, err
	}
	if vs := append(d.Violations(own), noteViolations(note)...); len(vs) > 0 {
		return a, fault.Invalid(vs...)
	}
	err = s.change(ctx, e, func(q *db.Queries, held Agent) error {
		v, err := readVersion(ctx, q, held, Published)
		if a = held; err != nil || v.equal(d) {
			return err
		}
		a, err = s.publish(ctx, q, held, d, false, e.Author, note)
		return err
	})
	return a, err
}

// Delete removes an agent. Its turns keep their versions, and running ones continue. The default
// agent cannot be deleted.
func (s *Store) Delete(ctx context.Context, e Edit) error {
	return s.change(ctx, e, func(q *db.Queries, held Agent) error {
		if held.Default {
			return fault.Invalid(fault.Violation{Param: "/name", Rule: "enum", Message: "The default agent cannot be deleted."})
		}
		if err := q.AgentDelete(ctx, held.ID); err != nil {
			return fmt.Errorf("delete agent: %w", err)
		}
		return nil
	})
}

// change runs do with the agent's row locked. It fails with UNKNOWN_AGENT, or with
// PRECONDITION_FAILED if the agent has changed since it was read.
func (s *Store) change(ctx context.Context, e Edit, do func(*db.Queries, Agent) error) error {
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := q.AgentLock(ctx, e.Workspace, nullable(e.Name))
		if err != nil {
			return fmt.Errorf("lock agent: %w", err)
		}
		held := agentOf(row.Agent)
		if e.Revision != 0 && e.Revision != held.Revision {
			return fault.New(fault.PreconditionFailed,
				"The agent %s was changed by another administrator. Read it again and repeat your change.", held.Name)
		}
		return do(q, held)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.unknownAgent(ctx, e.Workspace, e.Name)
	}
	return err
}

func (s *Store) publish(ctx context.Context, q *db.Queries, a Agent, d Definition, dropDraft bool, author, note string) (Agent, error) {
	row, err := s.insertVersion(ctx, q, a, d, a.Newest+1, author, note)
	if err != nil {
		return a, err
	}
	changed, err := q.AgentPublish(ctx, a.ID, &row.ID, dropDraft)
	if err != nil {
		return a, fmt.Errorf("publish agent: %w", err)
	}
	return agentOf(changed), nil
}

func (s *Store) insertVersion(ctx context.Context, q *db.Queries, a Agent, d Definition, number int, author,
	note string) (db.AgentVersion, error) {
	if s.Accept != nil {
		if err := s.Accept(d); err != nil {
			return db.AgentVersion{}, err
		}
	}
	p, err := d.params(a, number, author, note)
	if err != nil {
		return db.AgentVersion{}, err
	}
	row, err := q.AgentVersionInsert(ctx, p)
	if err != nil {
		return row, fmt.Errorf("store version of agent: %w", err)
	}
	return row, nil
}

func setDraft(ctx context.Context, q *db.Queries, a Agent, draft *uuid.UUID) (Agent, error) {
	row, err := q.AgentDraft(ctx, a.ID, draft)
	if err != nil {
		return a, fmt.Errorf("store draft of agent: %w", err)
	}
	return agentOf(row), nil
}

func noteViolations(note string) []fault.Violation {
	if !text.IsStorable(note) || utf8.RuneCountInString(note) > maxNote {
		return []fault.Violation{{Param: "/note", Rule: "max_length", Message: fmt.Sprintf("A note has at most %d characters.", maxNote),
			Expected: maxNote}}
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= 63 && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
