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
		Version: build.Version, Commit: build.Commit, Platform: build.Platform, Listening: s.events.IsListening(),
		Working:    s.turns.Working() == nil,
		Pool:       admin.Pool{Max: use.MaxConns(), Open: use.TotalConns(), InUse: use.AcquiredConns(), Waits: use.EmptyAcquireCount()},
		Migrations: admin.Migrations{Pending: []string{}}, Sandbox: s.describeSandbox(), LogLevel: s.Config.LogLevel.String(),
		Settings: []admin.Setting{},
	}
	for _, set := range s.Config.Settings() {
		v.Settings = append(v.Settings, admin.Setting{Name: set.Name, Value: set.Value, Source: set.Source})
	}
	for _, part := range []func(context.Context, *admin.System) error{s.describeMigrations, s.describeDatabase, s.describeJobs} {
		if err := part(ctx, &v); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (s *service) describeMigrations(ctx context.Context, v *admin.System) error {
	steps, err := migrations.Status(ctx, s.pool.Config().ConnString())
	if err != nil {
		return err
	}
	for _, step := range migrations.Pending(steps) {
		v.Migrations.Pending = append(v.Migrations.Pending, fmt.Sprintf("%s %d %s", step.Source, step.Version, step.Name))
	}
	v.Migrations.Applied = len(steps) - len(v.Migrations.Pending)
	for _, step := range steps {
		if step.Source == "parley" && step.Applied {
			v.Migrations.Version = max(v.Migrations.Version, step.Version)
		}
	}
	return nil
}

// describeDatabase reads the state of the database. PostgreSQL shows the transactions of other
// users to members of pg_monitor only.
func (s *service) describeDatabase(ctx context.Context, v *admin.System) error {
	var err error
	if v.PostgreSQL, err = serverVersion(ctx, s.pool); err != nil {
		return fmt.Errorf("read the version of PostgreSQL: %w", err)
	}
	err = s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM nodes_alive()), count(*) FILTER (WHERE application_name = 'parley listener'),
       pg_database_size(current_database()), count(*), current_setting('max_connections')::int,
       coalesce(extract(epoch FROM clock_timestamp() - min(xact_start) FILTER (WHERE pid <> pg_backend_pid())), 0)::float8
FROM pg_stat_activity WHERE datname = current_database()`).Scan(&v.Replicas, &v.Listeners,
		&v.Database.Size, &v.Database.Connections, &v.Database.MaxConnections, &v.Database.LongestTransaction)
	if err != nil {
		return fmt.Errorf("read the state of the database: %w", err)
	}
	return nil
}

// failedJobs is how many failed jobs are described.
const failedJobs = 20

// queuesQuery is the beginning of the query for admin.Queue. Jobs that are due at once can have a
// time before their creation. The table follows.
const queuesQuery = `SELECT queue, state::text, count(*), greatest(extract(epoch FROM now() - min(greatest(scheduled_at, created_at))), ` +
	`0)::float8 FROM `

func (s *service) describeJobs(ctx context.Context, v *admin.System) error {
	rows, err := s.pool.Query(ctx, queuesQuery+`river_job GROUP BY queue, state ORDER BY queue, state`)
	if err != nil {
		return fmt.Errorf("count jobs: %w", err)
	}
	if v.Queues, err = pgx.CollectRows(rows, pgx.RowToStructByPos[admin.Queue]); err != nil {
		return fmt.Errorf("count jobs: %w", err)
	}
	rows, err = s.pool.Query(ctx, `SELECT id, kind, queue, state::text, attempt, max_attempts, coalesce(attempted_at, created_at),
       coalesce(left(errors[cardinality(errors)] ->> 'error', 300), '')
FROM river_job WHERE state IN ('retryable', 'discarded') ORDER BY id DESC LIMIT $1`, failedJobs)
	if err != nil {
		return fmt.Errorf("list failed jobs: %w", err)
	}
	if v.FailedJobs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[admin.Job]); err != nil {
		return fmt.Errorf("list failed jobs: %w", err)
	}
	return nil
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
