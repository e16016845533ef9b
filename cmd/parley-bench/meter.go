package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// meter is the state of all counters of a world at one moment.
type meter struct {
	usage      usage // processor time of the servers and of PostgreSQL
	memory     int64 // the maximum RAM of a server
	wal        int64 // bytes
	commits    int64 // commits of the database; PostgreSQL has the last ones once the servers have stopped
	statements int64
}

// meter reads the counters. Without a database, only those of the servers are available.
func (w *world) meter(ctx context.Context) (m meter, err error) {
	m.usage.Known = true
	for _, c := range w.children {
		line, err := c.ask("figures")
		if err != nil {
			return m, err
		}
		m.usage = m.usage.plus(line.CPU)
		m.memory = max(m.memory, line.Peak)
	}
	if w.mode == Raw {
		return m, nil
	}
	m.usage = m.usage.plus(postgresUsage(w.postmaster))
	err = w.pool.QueryRow(ctx,
		`SELECT (pg_current_wal_lsn() - '0/0')::bigint, (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())`).
		Scan(&m.wal, &m.commits)
	if err == nil && w.counts {
		err = w.pool.QueryRow(ctx, `SELECT coalesce(sum(s.calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
			WHERE d.datname = current_database()`).Scan(&m.statements)
	}
	if err != nil {
		return m, fmt.Errorf("read PostgreSQL's counters: %w", err)
	}
	return m, nil
}

// perDelta adds the costs per delta to the figures.
func (w *world) perDelta(f Figures, before, after meter, deltas int) {
	after.usage.since(before.usage).perMillion(f, deltas)
	if w.mode != Raw {
		f[WAL] = float64(after.wal-before.wal) / float64(deltas)
	}
	if after.memory > 0 {
		f[Peak] = float64(after.memory)
	}
}

// perTurn adds the costs per turn.
func (w *world) perTurn(f Figures, before, after meter, turns int) {
	if spent := after.usage.since(before.usage); spent.Known {
		f[TurnCPU] = spent.Seconds * 1e3 / float64(turns)
		f[TurnDatabase] = spent.Database * 1e3 / float64(turns)
	}
	if w.counts {
		f[Statements] = float64(after.statements-before.statements) / float64(turns)
	}
}

// commitsPerTurn stops the servers, so that PostgreSQL has all their statistics. These include the
// servers' own few dozen commits until their end.
func (w *world) commitsPerTurn(ctx context.Context, f Figures, before meter, turns int) error {
	if err := w.stop(); err != nil {
		return err
	}
	after, err := w.meter(ctx)
	f[Commits] = float64(after.commits-before.commits) / float64(turns)
	return err
}

// countsStatements reports whether the database has pg_stat_statements.
func countsStatements(ctx context.Context, p *pgxpool.Pool) (there bool, err error) {
	err = p.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements')`).Scan(&there)
	return there, err
}
