package server

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"os"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Stream identifies a stream in log messages.
type Stream struct {
	Session, Turn uuid.UUID
	Key           string // the caller's key: the stream ends when it is revoked
}

// BatchEncoder writes the batches of a turn as the frames of a protocol.
type BatchEncoder[T any] interface {
	// Begin writes and flushes the frames before the first batch.
	Begin() error
	// Batch writes a batch, which is then flushed; ended reports whether the stream ends with it.
	Batch([]T) (ended bool, err error)
	// Gone writes the end of a stream whose events were removed.
	Gone(error) error
}

// StreamTurn follows a turn and writes its frames until the turn ends. It returns why the stream
// ended earlier: eventlog.ErrGone if the encoder has reported that.
func StreamTurn[T any](s *Server, w http.ResponseWriter, ctx context.Context, about Stream,
	follow func(context.Context) iter.Seq2[[]T, error], encoder func(*sse.Writer) BatchEncoder[T],
) error {
	return s.WriteStream(w, ctx, about, func(ctx context.Context, sw *sse.Writer) error {
		enc := encoder(sw)
		if err := enc.Begin(); err != nil {
			return err
		}
		for batch, err := range follow(ctx) {
			if errors.Is(err, eventlog.ErrGone) {
				return errors.Join(err, enc.Gone(err), sw.Flush())
			}
			if err != nil {
				return err
			}
			ended, err := enc.Batch(batch)
			if err == nil {
				err = sw.Flush()
			}
			if err != nil || ended {
				return err
			}
		}
		return nil
	})
}

// WriteStream opens an event stream for write. Its context ends when the key is revoked or the
// client stops reading. An error of write is logged and returned.
func (s *Server) WriteStream(w http.ResponseWriter, ctx context.Context, about Stream,
	write func(context.Context, *sse.Writer) error) error {
	ctx, stop := s.Keys.While(ctx, about.Key)
	defer stop()
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	sw := sse.Open(w, sse.Options{Keepalive: s.Keepalive, WriteTimeout: s.WriteTimeout, Broken: broken})
	defer sw.Close()
	s.Metrics.Streams.Inc()
	defer s.Metrics.Streams.Dec()
	err := write(ctx, sw)
	if err != nil {
		s.logStreamEnd(ctx, about, err)
	} else {
		s.Metrics.StreamsClosed.WithLabelValues("finished").Inc()
	}
	return err
}

// logStreamEnd logs why a stream ended before its turn.
func (s *Server) logStreamEnd(ctx context.Context, about Stream, err error) {
	level, why, reason := slog.LevelDebug, "stream closed: client gone or server stopping", "client_gone"
	switch {
	case errors.Is(err, eventlog.ErrGone):
		level, why, reason = slog.LevelWarn, "stream closed: events removed", "events_removed"
	case errors.Is(err, apikey.ErrDead):
		level, why, reason = slog.LevelInfo, "stream closed: key not valid any more", "key_revoked"
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.Is(err, sse.ErrBroken):
		level, why, reason = slog.LevelInfo, "stream closed: client too slow", "too_slow"
	case !errors.Is(err, sse.ErrBroken) && ctx.Err() == nil:
		level, why, reason = slog.LevelWarn, "stream closed: events not readable", "failed"
	}
	s.Metrics.StreamsClosed.WithLabelValues(reason).Inc()
	s.Log.Log(context.WithoutCancel(ctx), level, why, "session", about.Session, "turn", about.Turn, "key", about.Key, "err", err)
}
