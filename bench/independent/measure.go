package main

import (
	"fmt"
	"io"
	"time"
)

// measured is one workload on one server: the clients' results and the resources used.
type measured struct {
	result *result
	server float64 // CPU seconds of the server
	pg     float64 // CPU seconds of PostgreSQL, all processes
	memory int64   // maximum RAM of the server while the load ran, in bytes
	wal    int64   // bytes

	counted             units // the workload that the next two belong to; empty if unknown
	statements, commits float64
}

// units are the turns and deltas of a run.
type units struct{ turns, deltas int }

// settle is the wait after a load: the last turns end, and jobs complete.
const settle = time.Second

// measure starts the server, runs a workload on it and stops it.
func (h *host) measure(w workload, log io.Writer) (m measured, err error) {
	if err := h.start(w.running); err != nil {
		return m, err
	}
	defer h.stop()
	if err := warm(&h.site); err != nil {
		return m, err
	}
	time.Sleep(max(settle, w.quiet))
	postmaster, err := postmasterOf(h.dir)
	if err != nil {
		return m, err
	}
	before, err := h.meter(postmaster)
	if err != nil {
		return m, err
	}
	peak := watchMemory(h.cmd.Process.Pid)
	m.result = w.run(&h.site)
	m.memory = peak()
	if w.quiet == 0 {
		time.Sleep(settle)
	}
	after, err := h.meter(postmaster)
	if err != nil {
		return m, err
	}
	m.server, m.pg, m.wal = after.server-before.server, after.pg-before.pg, after.wal-before.wal
	if w.quiet > 0 { // its statistics are exact without a wait: statements run all the time
		m.commits = float64(after.commits - before.commits)
	}
	return m, nil
}

// meter is the state of all counters at one moment.
type meter struct {
	server, pg   float64
	wal, commits int64
}

func (h *host) meter(postmaster int) (m meter, err error) {
	if m.wal, err = number64(h.site.Database, `SELECT pg_current_wal_lsn() - '0/0'`); err != nil {
		return m, err
	}
	if m.commits, err = number64(h.site.Database, `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`); err != nil {
		return m, err
	}
	m.server, err = seconds(h.cmd.Process.Pid)
	if err == nil {
		m.pg, err = secondsOfTree(postmaster)
	}
	return m, err
}

// flushed is the time after which PostgreSQL's processes have published their counters.
const flushed = 11 * time.Second

// count runs a workload with pg_stat_statements loaded and counts statements and commits. The
// server's own, which are measured at rest, are subtracted. Times are not measured here, since
// counting has a cost.
func (h *host) count(w workload, m *measured) error {
	if err := h.start(w.running); err != nil {
		return err
	}
	defer h.stop()
	if err := warm(&h.site); err != nil {
		return err
	}
	type reading struct {
		at                  time.Time
		commits, statements int64
	}
	read := func() (r reading, err error) {
		time.Sleep(flushed)
		r.at = time.Now()
		if r.commits, err = number64(h.site.Database, `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`); err != nil {
			return r, err
		}
		r.statements, err = number64(h.site.Database, `SELECT sum(calls)::bigint FROM pg_stat_statements`)
		return r, err
	}
	var at [3]reading
	for i := range at {
		if i == 2 {
			r := w.run(&h.site)
			if err := r.err(); err != nil {
				return err
			}
			m.counted = units{r.turns, r.deltas}
		}
		var err error
		if at[i], err = read(); err != nil {
			return err
		}
	}
	rest, load := at[1].at.Sub(at[0].at).Seconds(), at[2].at.Sub(at[1].at).Seconds()
	m.commits = float64(at[2].commits-at[1].commits) - float64(at[1].commits-at[0].commits)*load/rest
	m.statements = float64(at[2].statements-at[1].statements) - float64(at[1].statements-at[0].statements)*load/rest
	return nil
}

// loadStatements makes the next start load pg_stat_statements.
func (h *host) loadStatements() error {
	if err := h.start(0); err != nil {
		return err
	}
	_, err := psql(h.site.Database, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`)
	if err == nil {
		_, err = psql(h.site.Database, `ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`)
	}
	h.stop()
	if err != nil {
		return fmt.Errorf("pg_stat_statements: %w", err)
	}
	return nil
}
