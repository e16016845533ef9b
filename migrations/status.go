package migrations

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/rivermigrate"
)

// Step is one migration and whether the database has it.
type Step struct {
	Source    string // "parley" or "river"
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero for River's, which does not record it
}

// Status lists every migration of this binary, ours first, oldest first. It changes nothing, takes
// no lock and works on a database that was never migrated.
func Status(ctx context.Context, dsn string) ([]Step, error) {
	m, err := open(ctx, dsn, Options{})
	if err != nil {
		return nil, err
	}
	defer m.close()
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	steps, err := m.ours(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	river, err := m.rivers(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status of River: %w", err)
	}
	return append(steps, river...), nil
}

// Pending returns the steps that Up would apply.
func Pending(steps []Step) (pending []Step) {
	for _, s := range steps {
		if !s.Applied {
			pending = append(pending, s)
		}
	}
	return pending
}

func (m *migrator) ours(ctx context.Context) ([]Step, error) {
	var steps []Step
	for _, src := range m.goose.ListSources() {
		steps = append(steps, Step{Source: "parley", Version: src.Version, Name: path.Base(src.Path)})
	}
	// goose would create its table, outside the lock, only to find it empty.
	var migrated bool
	err := m.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, goose.DefaultTablename).Scan(&migrated)
	if err != nil || !migrated {
		return steps, err
	}
	status, err := m.goose.Status(ctx)
	if err != nil {
		return nil, err
	}
	for i, s := range status { // in the order of ListSources
		steps[i].Applied, steps[i].AppliedAt = s.State == goose.StateApplied, s.AppliedAt
	}
	return steps, nil
}

// rivers requests a dry run instead of the applied versions: River refuses to name versions that
// are newer than itself.
func (m *migrator) rivers(ctx context.Context) ([]Step, error) {
	res, err := m.river.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{DryRun: true})
	if err != nil {
		return nil, err
	}
	pending := map[int]bool{}
	for _, v := range res.Versions {
		pending[v.Version] = true
	}
	var steps []Step
	for _, v := range m.river.AllVersions() {
		steps = append(steps, Step{Source: "river", Version: int64(v.Version), Name: v.Name, Applied: !pending[v.Version]})
	}
	return steps, nil
}
