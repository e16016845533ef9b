package turns

import (
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/sse"
)

// writer writes the frames of a task.
type writer struct {
	*call.Call
	sw       *sse.Writer
	turn     uuid.UUID
	p        *task.Projection
	upto     int64 // events up to here are in the task that is sent first
	taskSent bool  // that task was sent
	last     int64 // id of the newest frame
}

// Begin implements server.BatchEncoder.
func (w *writer) Begin() error {
	w.sw.Retry(reconnect)
	return nil
}

// Gone implements server.BatchEncoder.
func (w *writer) Gone(err error) error { return w.writeFailure(err) }

// Batch implements server.BatchEncoder. The stream ends with the task, or, in version 0.3, when the
// task waits for something.
func (w *writer) Batch(evs []event.Event) (over bool, err error) {
	for i := range evs {
		ev := &evs[i]
		if ev.Kind == event.KindDone && ev.Turn == w.turn { // the end always has a frame of its own
			w.upto = min(w.upto, ev.Seq-1)
		}
		if err := w.sendTask(ev.Seq); err != nil { // an event of another turn also triggers it
			return false, err
		}
		if ev.Turn != w.turn || over {
			continue
		}
		frames, err := w.p.Apply(*ev)
		if err != nil {
			return false, err
		}
		if ev.Seq <= w.upto {
			continue
		}
		for _, f := range frames {
			f.Waits = f.Waits && !hasEvents(evs[i+1:], w.turn)
			if err := w.writeFrame(f); err != nil {
				return false, err
			}
			over = over || w.Version.Ends(f)
		}
	}
	if err := w.sendTask(evs[len(evs)-1].Seq + 1); err != nil {
		return false, err
	}
	if !over && w.taskSent && w.Version.Leaves(w.p.State()) {
		return true, w.writeFrame(w.p.Now(w.last))
	}
	return over, nil
}

// sendTask sends the task once, before the first event that is not part of it.
func (w *writer) sendTask(next int64) error {
	if w.taskSent || next <= w.upto {
		return nil
	}
	w.taskSent = true
	return w.writeFrame(task.Frame{Update: task.Update{Task: w.p.Snapshot()}, ID: w.upto})
}

// hasEvents reports whether evs has an event of the turn, which then continues.
func hasEvents(evs []event.Event, turn uuid.UUID) bool {
	return slices.ContainsFunc(evs, func(ev event.Event) bool { return ev.Turn == turn })
}

func (w *writer) writeFrame(f task.Frame) error {
	w.last = max(w.last, f.ID)
	return w.writeEvent(f.ID, w.Result(w.Version.Frame(f)))
}

// writeFailure writes an error into a stream that has begun.
func (w *writer) writeFailure(err error) error {
	failure := w.Failure(w.RPCError(err))
	if !w.Plain {
		return w.writeEvent(0, failure)
	}
	data, err := server.EncodeFrame(failure)
	if err != nil {
		return err
	}
	return w.sw.Named("error", data)
}

func (w *writer) writeEvent(id int64, v any) error {
	data, err := server.EncodeFrame(v)
	if err != nil {
		return err
	}
	return w.sw.Message(id, data)
}
