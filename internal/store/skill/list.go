package skill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Status is the state of a skill: whether callers can start it.
type Status string

const (
	Draft    Status = "draft"    // never published
	Active   Status = "active"   // one version runs
	Archived Status = "archived" // no version runs any more
)

// Entry is a skill in a list, described by its running version, or else by its newest.
type Entry struct {
	Name        string
	Status      Status
	Version     int
	Newest      int // number of the last version
	Description string
	Contract    *Contract
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// List returns a workspace's skills, by name.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Entry, error) {
	rows, err := s.q.SkillsList(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list skills: %w", err)
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		contract, err := readContract(r.Contract)
		if err != nil {
			return nil, err
		}
		entries[i] = Entry{
			Name: r.Name, Status: Status(r.Status), Version: int(r.Version), Newest: int(r.Newest),
			Description: r.Description, Contract: contract, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		}
	}
	return entries, nil
}

// Version is one version of a skill as it was pushed.
type Version struct {
	Skill
	Status    Status // status of the skill
	Active    bool   // this version runs
	Document  string // SKILL.md
	CreatedAt time.Time
}

// Get reads a version of a skill; 0 is the newest.
func (s *Store) Get(ctx context.Context, workspace uuid.UUID, name string, version int) (Version, error) {
	fold, ok := Fold(name)
	if !ok {
		return Version{}, s.unknownSkill(ctx, workspace, name, false)
	}
	r, err := s.q.SkillVersion(ctx, workspace, fold, int32(min(version, math.MaxInt32)))
	if errors.Is(err, pgx.ErrNoRows) && version != 0 {
		newest, err := s.Get(ctx, workspace, name, 0)
		if err != nil {
			return Version{}, err
		}
		return Version{}, noVersion(newest.Name, newest.Version)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return Version{}, s.unknownSkill(ctx, workspace, name, false)
	}
	if err != nil {
		return Version{}, fmt.Errorf("read version of skill: %w", err)
	}
	contract, err := readContract(r.Contract)
	return Version{
		Skill: Skill{
			ID: r.ID, Name: r.Name, Version: int(r.Version), Description: r.Description,
			Body: documentBody(r.Document), Contract: contract,
		},
		Status: Status(r.Status), Active: r.Active != nil && *r.Active == r.Version,
		Document: r.Document, CreatedAt: r.CreatedAt,
	}, err
}

// Change is an entry in the history of a skill.
type Change struct {
	Action  string
	Version *int // nil if the action concerns every version
	Actor   string
	At      time.Time
}

// History returns the changes of a skill, in order.
func (s *Store) History(ctx context.Context, workspace uuid.UUID, name string) ([]Change, error) {
	fold, ok := Fold(name)
	if !ok {
		return nil, s.unknownSkill(ctx, workspace, name, false)
	}
	rows, err := s.q.SkillChanges(ctx, workspace, fold)
	if err != nil {
		return nil, fmt.Errorf("read history of skill: %w", err)
	}
	if len(rows) == 0 { // every skill has at least one change
		return nil, s.unknownSkill(ctx, workspace, name, false)
	}
	changes := make([]Change, len(rows))
	for i, r := range rows {
		changes[i] = Change{Action: r.Action, Actor: r.Actor, At: r.At}
		if r.Version != nil {
			changes[i].Version = new(int(*r.Version))
		}
	}
	return changes, nil
}
