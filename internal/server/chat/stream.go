package chat

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Projection tells a turn in the words of a protocol. It is given the rows of one reading in
// order, and says of each what frames it becomes: values that are written as JSON, or Raw.
type Projection interface {
	Begin() []any
	Row(Row) []any
	Fail(event.Error) []any // the rest cannot be told
}

// Gone is how a reading fails whose rows are missing.
var Gone = event.SessionGone.Failure("The events of this turn are not there any more. Read the session's messages.")

// Raw is a frame that is no JSON.
type Raw string

// Named is a frame whose event has a name.
type Named interface{ Event() string }

// Stream answers with what a projection makes of a reading. What goes wrong after the first
// frame can only be told by cutting the connection off.
func (d *Desk) Stream(w http.ResponseWriter, r *server.Request, rd Reading, p Projection) error {
	if r.Method == http.MethodHead {
		sse.Headers(w.Header())
		w.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, stop := d.Keys.While(r.Context(), r.Caller.Key)
	defer stop()
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	sw := sse.Open(w, sse.Options{Keepalive: d.Keepalive, WriteTimeout: d.WriteTimeout, Broken: broken})
	defer sw.Close()
	if err := d.pump(ctx, sw, r.Caller, rd, p); err != nil {
		d.left(ctx, r.Caller.Key, rd, err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (d *Desk) pump(ctx context.Context, sw *sse.Writer, c server.Caller, rd Reading, p Projection) error {
	if err := send(sw, p.Begin()); err != nil {
		return err
	}
	for rows, err := range d.Rows(ctx, c, rd) {
		if errors.Is(err, session.ErrGone) {
			return send(sw, p.Fail(Gone))
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

// Tell answers with a stream that no reading stands for.
func (d *Desk) Tell(w http.ResponseWriter, frames []any) error {
	sw := sse.Open(w, sse.Options{Keepalive: d.Keepalive, WriteTimeout: d.WriteTimeout})
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
		data, err := Encode(f)
		if err != nil {
			return err
		}
		if named, ok := f.(Named); ok {
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

// Encode is the data of a frame, on what is one line to every reader.
func Encode(frame any) ([]byte, error) {
	if raw, ok := frame.(Raw); ok {
		return []byte(raw), nil
	}
	data, err := server.Encode(frame)
	if err != nil {
		return nil, err
	}
	return event.OneLine(data[:len(data)-1]), nil
}

// left notes why a stream was cut off: its reader is gone or too slow, its key is dead, the
// database is, or the service stops.
func (d *Desk) left(ctx context.Context, key string, rd Reading, err error) {
	level, why := slog.LevelDebug, "a chat client's stream ended early"
	switch {
	case errors.Is(err, apikey.ErrDead):
		level, why = slog.LevelInfo, "cut a chat client's stream off: its key is not valid any more"
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.Is(err, sse.ErrBroken):
		level, why = slog.LevelInfo, "cut a chat client's stream off: its reader takes nothing"
	case !errors.Is(err, sse.ErrBroken) && ctx.Err() == nil:
		level, why = slog.LevelWarn, "cut a chat client's stream off: it cannot be told further"
	}
	d.Log.Log(context.WithoutCancel(ctx), level, why, "session", rd.Session(), "turn", rd.Turn, "key", key, "err", err)
}
