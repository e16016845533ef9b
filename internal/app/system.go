package app

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/migrations"
)

// describe returns the state of this process and of its database, for administrators.
func (s *service) describe(ctx context.Context) (admin.System, error) {
	build, use := ThisBuild(), s.pool.Stat()
	v := admin.System{
		Version: build.Version, Commit: build.Commit, Platform: build.Platform, Listening: s.events.IsListening(), Working: s.turns.Working() == nil,
		Pool:       admin.Pool{Max: use.MaxConns(), Open: use.TotalConns(), InUse: use.AcquiredConns(), Waits: use.EmptyAcquireCount()},
		Migrations: admin.Migrations{Pending: []string{}}, Sandbox: s.describeSandbox(), Settings: []admin.Setting{},
	}
	for _, set := range s.Config.Settings() {
		v.Settings = append(v.Settings, admin.Setting{Name: set.Name, Value: set.Value, Source: set.Source})
	}
	var err error
	if v.PostgreSQL, err = serverVersion(ctx, s.pool); err != nil {
		return v, fmt.Errorf("read the version of PostgreSQL: %w", err)
	}
	steps, err := migrations.Status(ctx, s.pool.Config().ConnString())
	if err != nil {
		return v, err
	}
	for _, step := range migrations.Pending(steps) {
		v.Migrations.Pending = append(v.Migrations.Pending, fmt.Sprintf("%s %d %s", step.Source, step.Version, step.Name))
	}
	v.Migrations.Applied = len(steps) - len(v.Migrations.Pending)
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM nodes_alive()`).Scan(&v.Replicas); err != nil {
		return v, fmt.Errorf("count the replicas: %w", err)
	}
	rows, err := s.pool.Query(ctx, `SELECT queue, state::text, count(*) FROM river_job GROUP BY queue, state ORDER BY queue, state`)
	if err != nil {
		return v, fmt.Errorf("count jobs: %w", err)
	}
	v.Queues, err = pgx.CollectRows(rows, pgx.RowToStructByPos[admin.Queue])
	return v, err
}

// describeSandbox returns whether the agent has commands.
func (s *service) describeSandbox() admin.Sandbox {
	for _, spec := range s.toolSpecs() {
		if spec.Name == "bash" && spec.Unavailable != "" {
			return admin.Sandbox{Reason: &spec.Unavailable}
		}
	}
	return admin.Sandbox{Available: true}
}
