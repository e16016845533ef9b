package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// EraseSession takes a session's content away, with its files, folder and callbacks.
// by says who wants it. It needs no master key.
func (a *Admin) EraseSession(ctx context.Context, id uuid.UUID, by string) (session.Erasure, error) {
	guard, err := egress.New(egress.Config{}) // nothing is sent from here
	if err != nil {
		return session.Erasure{}, err
	}
	s := session.New(a.pool, session.Options{Erase: []session.Eraser{
		filestore.New(a.pool, nil, filestore.Options{}).Erase, callback.NewStore(a.pool, nil, guard).Erase,
		workdir.New(a.pool, workdir.Options{}).Erase, a.Runner.Erase,
	}})
	return s.Erase(ctx, id, by)
}

// Retention tells how the log stands, by this process's own settings.
func (a *Admin) Retention(ctx context.Context, cfg Config) (session.Retention, error) {
	return session.New(a.pool, cfg.retention()).Retention(ctx)
}

// retention is what the settings say of it.
func (c Config) retention() session.Options {
	return session.Options{Replay: time.Duration(c.ReplayWindow), Audit: time.Duration(c.AuditRetention)}
}
