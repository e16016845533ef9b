// Package skill owns skills: tasks that callers start by name, each a Markdown text for the agent
// with a contract for its inputs, written as SKILL.md. It is the only writer of their tables. A
// pushed version never changes, one version runs at a time, and every change is recorded with its
// actor and time. The callers' values appear in a prompt and nowhere else: not in errors, not in
// labels, not in logs.
package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/search"
)

// Skill is the content of one version of a skill.
type Skill struct {
	ID          uuid.UUID // zero: it is not stored
	Name        string    // as its author writes it
	Version     int       // 1, 2, 3 …
	Description string
	Body        string    // Markdown, the agent's instructions
	Contract    *Contract // nil: it accepts any input
}

// Store reads and writes skills. Their names are compared by Fold.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

// New makes a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// Active returns the active skill with this name, or fails with UNKNOWN_SKILL and similar active
// skills.
func (s *Store) Active(ctx context.Context, workspace uuid.UUID, name string) (Skill, error) {
	fold, ok := Fold(name)
	if !ok {
		return Skill{}, s.unknownSkill(ctx, workspace, name, true)
	}
	row, err := s.q.SkillActive(ctx, workspace, fold)
	if errors.Is(err, pgx.ErrNoRows) {
		return Skill{}, s.unknownSkill(ctx, workspace, name, true)
	}
	if err != nil {
		return Skill{}, fmt.Errorf("read active skill: %w", err)
	}
	contract, err := readContract(row.Contract)
	return Skill{
		ID: row.ID, Name: row.Name, Version: int(row.Version), Description: row.Description,
		Body: documentBody(row.Document), Contract: contract,
	}, err
}

// maxCandidates is the maximum number of names suggested for an unknown one.
const maxCandidates = 5

// unknownSkill returns UNKNOWN_SKILL with candidates: among the active skills for callers, among
// all for administrators; the nearest first, or the first by name if none is near.
func (s *Store) unknownSkill(ctx context.Context, workspace uuid.UUID, name string, onlyActive bool) error {
	names, err := s.q.SkillNames(ctx, workspace, onlyActive)
	if err != nil {
		return fmt.Errorf("read names of skills: %w", err)
	}
	kind := "active skill"
	if !onlyActive {
		kind = "skill"
	}
	e := fault.New(fault.UnknownSkill, "No %s named %q.", kind, shortName(name))
	e.Param = "skill"
	e.Detail.Candidates = search.Nearest(name, names, maxCandidates)
	if near := e.Detail.Candidates; len(near) > 0 {
		e.Message += fmt.Sprintf(" Did you mean %q?", near[0])
	} else {
		e.Detail.Candidates = names[:min(len(names), maxCandidates)]
	}
	return e
}

func readContract(stored []byte) (*Contract, error) {
	if stored == nil {
		return nil, nil
	}
	var c Contract
	if err := json.Unmarshal(stored, &c); err != nil {
		return nil, fmt.Errorf("read contract of skill: %w", err)
	}
	return &c, nil
}
