package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Encoder tells a turn in the words of a protocol. It is given the rows of one reading in
// order, and says of each what frames it becomes: values that are written as JSON, or RawFrame.
type Encoder interface {
	Begin() []any
	Row(Row) []any
	Fail(event.Error) []any // the rest cannot be told
}

// EventsGone is how a reading fails whose rows are missing.
var EventsGone = event.SessionGone.Failure("The events of this turn are not there any more. Read the session's messages.")

// RawFrame is a frame that is no JSON.
type RawFrame string

// NamedFrame is a frame whose event has a name.
type NamedFrame interface{ Event() string }

// StreamTurn answers with what a projection makes of a reading. What goes wrong after the first
// frame can only be told by cutting the connection off.
func (s *Server) StreamTurn(w http.ResponseWriter, r *Request, rd Reading, p Encoder) error {
	if r.Method == http.MethodHead {
		sse.Headers(w.Header())
		w.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, stop := s.Keys.While(r.Context(), r.Caller.Key)
	defer stop()
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	sw := sse.Open(w, sse.Options{Keepalive: s.Keepalive, WriteTimeout: s.WriteTimeout, Broken: broken})
	defer sw.Close()
	if err := s.pump(ctx, sw, r.Caller, rd, p); err != nil {
		s.left(ctx, r.Caller.Key, rd, err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) pump(ctx context.Context, sw *sse.Writer, c Caller, rd Reading, p Encoder) error {
	if err := send(sw, p.Begin()); err != nil {
		return err
	}
	for rows, err := range s.TurnRows(ctx, c, rd) {
		if errors.Is(err, session.ErrGone) {
			return send(sw, p.Fail(EventsGone))
		}
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := write(sw, p.Row(row)); err != nil {
				return err
			}
		}
		if err := sw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// WriteFrames answers with a stream that no reading stands for.
func (s *Server) WriteFrames(w http.ResponseWriter, frames []any) error {
	sw := sse.Open(w, sse.Options{Keepalive: s.Keepalive, WriteTimeout: s.WriteTimeout})
	defer sw.Close()
	if send(sw, frames) != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func send(sw *sse.Writer, frames []any) error {
	if err := write(sw, frames); err != nil {
		return err
	}
	return sw.Flush()
}

func write(sw *sse.Writer, frames []any) error {
	for _, f := range frames {
		data, err := EncodeFrame(f)
		if err != nil {
			return err
		}
		if named, ok := f.(NamedFrame); ok {
			err = sw.Named(named.Event(), data)
		} else {
			err = sw.Message(0, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// EncodeFrame is the data of a frame, on what is one line to every reader.
func EncodeFrame(frame any) ([]byte, error) {
	if raw, ok := frame.(RawFrame); ok {
		return []byte(raw), nil
	}
	data, err := Encode(frame)
	if err != nil {
		return nil, err
	}
	return event.OneLine(data[:len(data)-1]), nil
}

// left notes why a stream was cut off: its reader is gone or too slow, its key is dead, the
// database is, or the service stops.
func (s *Server) left(ctx context.Context, key string, rd Reading, err error) {
	level, why := slog.LevelDebug, "a chat client's stream ended early"
	switch {
	case errors.Is(err, apikey.ErrDead):
		level, why = slog.LevelInfo, "cut a chat client's stream off: its key is not valid any more"
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.Is(err, sse.ErrBroken):
		level, why = slog.LevelInfo, "cut a chat client's stream off: its reader takes nothing"
	case !errors.Is(err, sse.ErrBroken) && ctx.Err() == nil:
		level, why = slog.LevelWarn, "cut a chat client's stream off: it cannot be told further"
	}
	s.Log.Log(context.WithoutCancel(ctx), level, why, "session", rd.Session(), "turn", rd.Turn, "key", key, "err", err)
}
