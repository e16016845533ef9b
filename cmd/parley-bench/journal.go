package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
)

// journal is a log of events below HTTP: the service's own, or the naive one.
type journal interface {
	// subject creates a session that can be written to.
	subject(ctx context.Context) (subject, error)
	close() error
}

// subject is one session of a journal.
type subject struct {
	// append returns when the event is durable.
	append func(ctx context.Context, b event.Body) error
	// read returns every appended event, in the order of the cursor.
	read func(ctx context.Context) ([]event.Event, error)
}

func openJournal(ctx context.Context, mode, dsn string, conns int32, running int) (journal, error) {
	if mode == Naive {
		return openNaive(ctx, dsn, conns)
	}
	j, err := openStore(ctx, dsn, conns)
	if err != nil {
		return nil, err
	}
	if j.workspace, err = newWorkspace(ctx, j.pool, running); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// runBackground runs a function with a pool until stop is called, which closes both.
func runBackground(ctx context.Context, p *pgxpool.Pool, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	return func() error {
		cancel(errStopped)
		defer p.Close()
		return <-ran
	}
}

func openNaive(ctx context.Context, dsn string, conns int32) (*naiveJournal, error) {
	p, err := openPool(ctx, dsn, conns)
	if err != nil {
		return nil, err
	}
	log := newNaiveLog(p)
	listening := make(chan struct{})
	j := &naiveJournal{log: log, stop: runBackground(ctx, p, func(ctx context.Context) error {
		return log.listen(ctx, sync.OnceFunc(func() { close(listening) }))
	})}
	select {
	case <-listening:
		return j, nil
	case <-time.After(10 * time.Second):
		return nil, errors.Join(errors.New("LISTEN takes too long"), j.close())
	}
}

// openStore opens the service's log on a pool of its own, like one process.
func openStore(ctx context.Context, dsn string, conns int32) (*sessionJournal, error) {
	p, err := openPool(ctx, dsn, conns)
	if err != nil {
		return nil, err
	}
	log := eventlog.New(p, eventlog.Options{})
	j := &sessionJournal{pool: p, log: log, store: session.New(p, log, session.Options{}), stop: runBackground(ctx, p, log.Run)}
	for began := time.Now(); !log.IsListening(); sleep(ctx, time.Millisecond) {
		if time.Since(began) > 10*time.Second || ctx.Err() != nil {
			return nil, errors.Join(errors.New("LISTEN takes too long"), j.close())
		}
	}
	return j, nil
}

type naiveJournal struct {
	log  *naiveLog
	stop func() error
}

func (j *naiveJournal) close() error { return j.stop() }

func (j *naiveJournal) subject(context.Context) (subject, error) {
	s, _ := j.begin()
	return s, nil
}

func (j *naiveJournal) begin() (subject, uuid.UUID) {
	id := uuid.Must(uuid.NewV7())
	return subject{
		append: func(ctx context.Context, b event.Body) error { return j.log.append(ctx, id, b) },
		read:   func(ctx context.Context) ([]event.Event, error) { return j.log.after(ctx, id, 0) },
	}, id
}

type sessionJournal struct {
	pool      *pgxpool.Pool
	log       *eventlog.Log
	store     *session.Store
	workspace workspace.Workspace
	stop      func() error
}

func (j *sessionJournal) close() error { return j.stop() }

// subject starts a turn and takes its lease, as a worker does.
func (j *sessionJournal) subject(ctx context.Context) (subject, error) {
	lease, from, err := beginTurn(ctx, j.store, j.workspace.ID)
	if err != nil {
		return subject{}, err
	}
	w := j.log.Writer(lease)
	return subject{
		append: func(ctx context.Context, b event.Body) error { return w.Append(ctx, b) },
		read:   func(ctx context.Context) ([]event.Event, error) { return appendedEvents(ctx, j.log, from) },
	}, nil
}

// beginTurn creates a session with a running turn of this process.
func beginTurn(ctx context.Context, s *session.Store, workspace uuid.UUID) (lease eventlog.Lease, from eventlog.From, err error) {
	var id uuid.UUID
	err = s.Open(ctx, session.Ref{Workspace: workspace}, func(tx *session.Tx) error {
		turn := uuid.Must(uuid.NewV7())
		from, _, err = tx.Begin(ctx, session.NewTurn{ID: turn, Message: event.Message{Content: "bench"}, MaxResponseSeconds: 600, MaxTurns: 50})
		if err != nil {
			return err
		}
		id = turn
		return nil
	})
	if err != nil {
		return lease, from, err
	}
	got, err := s.ClaimTurn(ctx, session.ClaimRequest{Session: from.Session, Turn: id, Lease: time.Hour})
	if err == nil && !got.Ours {
		err = errors.New("the turn cannot be claimed")
	}
	if err != nil {
		return lease, from, err
	}
	from.Seq = 0
	return got.Lease, from, nil
}

// appendedEvents returns the events that a worker appended after its claim.
func appendedEvents(ctx context.Context, log *eventlog.Log, from eventlog.From) ([]event.Event, error) {
	var all []event.Event
	for evs, err := range log.After(ctx, from) {
		if err != nil {
			return nil, err
		}
		for _, ev := range evs {
			switch ev.Kind {
			case event.KindMessage, event.KindOpen, event.KindStarted:
			default:
				all = append(all, ev)
			}
		}
	}
	return all, nil
}
