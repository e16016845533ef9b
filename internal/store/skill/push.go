package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Upload is a SKILL.md to be pushed.
type Upload struct {
	Document string
	Draft    bool   // store it without changing the running version
	By       string // actor for the record: "cli:anna"
	// Expected is the number of the newest version that the document was made from; nil: any. If
	// there is a newer one, Push fails with PRECONDITION_FAILED.
	Expected *int
}

// Pushed is the result of a push.
type Pushed struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Stored  bool   `json:"stored"` // false: the newest version is the same
	Active  bool   `json:"active"` // this version runs
}

// The actions on a skill.
const (
	actionPush    = "push"
	actionPublish = "publish"
	actionArchive = "archive"
)

// Push stores a skill. A document that differs from the newest version becomes the next version,
// and runs from now on unless it is a draft. Another spelling of an existing skill's name is
// rejected; only an archived skill releases its name.
func (s *Store) Push(ctx context.Context, workspace uuid.UUID, up Upload) (Pushed, error) {
	k, problems := Parse(up.Document)
	if len(problems) > 0 {
		return Pushed{}, problemsError(problems)
	}
	fold, _ := Fold(k.Name) // Parse has validated the name
	var contract []byte
	if k.Contract != nil {
		var err error
		if contract, err = json.Marshal(k.Contract); err != nil {
			return Pushed{}, fmt.Errorf("encode contract: %w", err)
		}
	}
	pushed := Pushed{Name: k.Name}
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := q.SkillLock(ctx, uuid.Must(uuid.NewV7()), workspace, k.Name, fold)
		if err != nil {
			return fmt.Errorf("lock skill: %w", err)
		}
		if up.Expected != nil && int(row.Newest) != *up.Expected {
			return fault.New(fault.PreconditionFailed, "The newest version of %s is %d. Read it, and repeat your change.", row.Name, row.Newest)
		}
		if err := checkSpelling(ctx, q, row, k.Name); err != nil {
			return err
		}
		same, err := hasDocument(ctx, q, row, up.Document)
		if err != nil {
			return err
		}
		pushed.Version = int(row.Newest)
		if !same {
			pushed.Version++
			pushed.Stored = true
			if err := q.SkillVersionInsert(ctx, db.SkillVersionInsertParams{
				SkillID: row.ID, WorkspaceID: workspace, Description: k.Description, Document: up.Document, Contract: contract,
			}); err != nil {
				return fmt.Errorf("store version of skill: %w", err)
			}
			if err := recordChange(ctx, q, row, actionPush, pushed.Version, up.By); err != nil {
				return err
			}
		}
		if up.Draft {
			pushed.Active = isActive(row, pushed.Version)
			return nil
		}
		pushed.Active = true
		return activateVersion(ctx, q, row, pushed.Version, up.By)
	})
	return pushed, err
}

// checkSpelling ensures that a skill has one spelling.
func checkSpelling(ctx context.Context, q *db.Queries, row db.Skill, name string) error {
	if row.Name == name {
		return nil
	}
	if row.Status != string(Archived) {
		return fault.Invalid(fault.Violation{
			Param: "/name", Rule: "unique", Suggestion: row.Name,
			Message: fmt.Sprintf(
				"There is a skill %q already, and %q is the same name: case does not count, nor does _ or -. Write it %[1]s, or archive "+
					"that skill first.", row.Name, name),
		})
	}
	if err := q.SkillRename(ctx, row.WorkspaceID, row.ID, name); err != nil {
		return fmt.Errorf("rename skill: %w", err)
	}
	return nil
}

// hasDocument reports whether a skill's newest version is this document.
func hasDocument(ctx context.Context, q *db.Queries, row db.Skill, document string) (bool, error) {
	if row.Newest == 0 {
		return false, nil
	}
	newest, err := q.SkillDocument(ctx, row.WorkspaceID, row.ID, row.Newest)
	if err != nil {
		return false, fmt.Errorf("read newest version of skill: %w", err)
	}
	return newest == document, nil
}

// Publish makes a version run; 0 is the newest.
func (s *Store) Publish(ctx context.Context, workspace uuid.UUID, name string, version int, by string) (Pushed, error) {
	var p Pushed
	err := s.changeSkill(ctx, workspace, name, func(q *db.Queries, row db.Skill) error {
		if version == 0 {
			version = int(row.Newest)
		}
		if version < 1 || version > int(row.Newest) {
			return noVersion(row.Name, int(row.Newest))
		}
		p = Pushed{Name: row.Name, Version: version, Active: true}
		return activateVersion(ctx, q, row, version, by)
	})
	return p, err
}

// Archive stops a skill from being started. Running turns continue; a later Publish undoes it.
func (s *Store) Archive(ctx context.Context, workspace uuid.UUID, name, by string) error {
	return s.changeSkill(ctx, workspace, name, func(q *db.Queries, row db.Skill) error {
		if row.Status == string(Archived) {
			return nil
		}
		if err := q.SkillArchive(ctx, workspace, row.ID); err != nil {
			return fmt.Errorf("archive skill: %w", err)
		}
		return recordChange(ctx, q, row, actionArchive, 0, by)
	})
}

// changeSkill runs do on a skill with its row locked, or fails with UNKNOWN_SKILL.
func (s *Store) changeSkill(ctx context.Context, workspace uuid.UUID, name string, do func(*db.Queries, db.Skill) error) error {
	fold, ok := Fold(name)
	if !ok {
		return s.unknownSkill(ctx, workspace, name, false)
	}
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := q.SkillFind(ctx, workspace, fold)
		if err != nil {
			return fmt.Errorf("lock skill: %w", err)
		}
		return do(q, row)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return s.unknownSkill(ctx, workspace, name, false)
	}
	return err
}

func activateVersion(ctx context.Context, q *db.Queries, row db.Skill, version int, by string) error {
	if isActive(row, version) {
		return nil
	}
	if err := q.SkillPublish(ctx, row.WorkspaceID, row.ID, int32(version)); err != nil {
		return fmt.Errorf("publish skill: %w", err)
	}
	return recordChange(ctx, q, row, actionPublish, version, by)
}

func isActive(row db.Skill, version int) bool {
	return row.Active != nil && int(*row.Active) == version
}

// recordChange records an action and its actor; version 0 is none.
func recordChange(ctx context.Context, q *db.Queries, row db.Skill, action string, version int, by string) error {
	change := db.SkillChangeInsertParams{WorkspaceID: row.WorkspaceID, SkillID: row.ID, Action: action, Actor: by}
	if version > 0 {
		change.Version = new(int32(version))
	}
	if err := q.SkillChangeInsert(ctx, change); err != nil {
		return fmt.Errorf("record change of skill: %w", err)
	}
	return nil
}

func noVersion(name string, newest int) error {
	return fault.Invalid(fault.Violation{Param: "/version", Rule: "range", Message: fmt.Sprintf("%s has the versions 1 to %d.", name, newest)})
}

// problemsError returns INVALID_REQUEST with every problem of a SKILL.md.
func problemsError(problems []Problem) error {
	vs := make([]fault.Violation, len(problems))
	for i, p := range problems {
		vs[i] = fault.Violation{Param: "/document", Rule: "format", Message: p.String()}
	}
	return fault.Invalid(vs...)
}
