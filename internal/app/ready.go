package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/rest"
)

// readyTimeout bounds each check of ready. It is shorter than the time limit of /readyz.
const readyTimeout = 2 * time.Second

// checkReady reports whether this process can work, for load balancers: whether it stays, whether a
// commit reaches the disk, whether it receives notifications from the other replicas, whether it
// runs turns, and whether the runner takes its commands, if the settings require that. The first
// failure is a fault that names it.
func (s *service) checkReady(ctx context.Context) error {
	checks := []struct {
		lacks string
		check func(context.Context) error
	}{
		{"it is stopping", s.isStaying},
		{"it cannot write to its database", s.canWrite},
		{"it receives no notifications from the other replicas", s.isListening},
		{"it does not run turns", func(context.Context) error { return s.turns.Working() }},
		{"it cannot run commands", s.canRunCommands},
	}
	failed := make([]error, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, readyTimeout)
			defer cancel()
			failed[i] = c.check(ctx)
		})
	}
	wg.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, "The service is not ready: %s.", checks[i].lacks), err)
		}
	}
	return nil
}

// writes makes PostgreSQL write to its log and wait for the disk, like every commit, without
// changing a row.
const writes = `SELECT pg_logical_emit_message(true, 'parley', 'ready')::text, current_setting('transaction_read_only')`

func (s *service) canWrite(ctx context.Context) error {
	if s.Config.Durability != "off" {
		if err := checkDurable(ctx, s.pool); err != nil {
			return err
		}
	}
	var at, readOnly string
	if err := s.pool.QueryRow(ctx, writes).Scan(&at, &readOnly); err != nil {
		return fmt.Errorf("write to the database: %w", err)
	}
	if readOnly == "on" {
		return errors.New("the database is read-only")
	}
	return nil
}

func (s *service) isStaying(context.Context) error {
	if s.stopping.Load() {
		return rest.ErrStopping
	}
	return nil
}

// canRunCommands asks the runner. Without PARLEY_SANDBOX=require, messages are answered without
// commands as well.
func (s *service) canRunCommands(ctx context.Context) error {
	if s.remote == nil || s.Config.Sandbox == "auto" {
		return nil
	}
	return s.remote.Probe(ctx)
}

func (s *service) isListening(context.Context) error {
	if !s.events.IsListening() {
		return errors.New("the listening connection is lost")
	}
	return nil
}
