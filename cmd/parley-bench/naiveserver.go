package main

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
)

// naiveConns is the naive server's limit of connections: with fewer it commits less at once.
const naiveConns = 64

// naiveSource serves the naive design over HTTP.
type naiveSource struct {
	log   *naiveLog
	guide *builtin.Guide
}

func serveNaive(ctx context.Context, dsn string, streams int, ready func(url string)) error {
	p, err := openPool(ctx, dsn, int32(min(streams+4, naiveConns)))
	if err != nil {
		return err
	}
	defer p.Close()
	src := &naiveSource{log: newNaiveLog(p), guide: builtin.New()}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	listening := make(chan struct{})
	heard := make(chan error, 1)
	go func() { heard <- src.log.listen(ctx, func() { close(listening) }) }()
	select {
	case <-listening:
	case err := <-heard:
		return err
	}
	if err := serveSource(ctx, src, ready); err != nil {
		return err
	}
	stop()
	return <-heard
}

func (s *naiveSource) start(ctx context.Context, command string) (uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	go func() {
		_ = runModel(ctx, s.guide, id, command, func(b event.Body) error { return s.log.append(ctx, id, b) })
	}()
	return id, nil
}

func (s *naiveSource) follow(ctx context.Context, session uuid.UUID, cursor int64, each func([]event.Event) error) error {
	for evs, err := range s.log.follow(ctx, session, cursor) {
		if err != nil {
			return err
		}
		if err := each(evs); err != nil {
			return err
		}
	}
	return nil
}
