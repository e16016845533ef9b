package a2a

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// send accepts a message and returns its task: at once, or when the task has ended or waits for an
// answer.
func (c *call) send() (any, error) {
	in, err := c.parser.Parse()
	if err != nil {
		return nil, err
	}
	if !in.Immediately {
		release, err := c.HoldStream(c.r.Context(), c.caller)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	id, context, err := c.take(&in)
	if err != nil {
		return nil, err
	}
	read := c.await
	if in.Immediately {
		read = c.read
	}
	v, err := read(id)
	if err != nil {
		return nil, c.storedError(id, context, err)
	}
	ctx, stop := c.brief()
	defer stop()
	t, err := c.show(ctx, v, task.Shape{Modes: in.Modes, History: in.History, Artifacts: true})
	if err != nil {
		return nil, c.storedError(id, context, err)
	}
	return c.version.Sent(t), nil
}

// sendStream accepts a message and streams its task.
func (c *call) sendStream() (any, error) {
	in, err := c.parser.Parse()
	if err != nil {
		return nil, err
	}
	if in.Cursor, err = c.cursor(); err != nil {
		return nil, err
	}
	release, err := c.HoldStream(c.r.Context(), c.caller)
	if err != nil {
		return nil, err
	}
	defer release()
	id, context, err := c.take(&in)
	if err != nil {
		return nil, err
	}
	v, err := c.read(id)
	if err != nil {
		return nil, c.storedError(id, context, err)
	}
	look := &look{view: v, modes: in.Modes, history: in.History, from: fromStart}
	switch {
	case in.Cursor > 0:
		look.from, look.cursor = fromCursor, in.Cursor
	case in.Task != "":
		look.from, look.answers = fromNow, true
	}
	if err := c.stream(look); err != nil {
		return nil, c.storedError(id, context, err)
	}
	return nil, nil
}

// take stores a message, or finds where it was stored before. It returns its task and context.
func (c *call) take(in *message.Incoming) (id, of uuid.UUID, err error) {
	if in.Task != "" {
		return c.continueTask(in)
	}
	if _, err := c.Count(c.r.Context(), c.caller, ratelimit.Messages); err != nil {
		return id, of, err
	}
	if err := c.r.Context().Err(); err != nil {
		return id, of, err
	}
	ctx, stop := c.Brief(context.WithoutCancel(c.r.Context()))
	defer stop()
	if taken, err := c.Sessions.Answered(ctx, c.idempotency(in)); err != nil {
		return id, of, err
	} else if taken {
		return id, of, rpc.ReusedMessage()
	}
	started, err := c.startTask(ctx, in)
	if err == nil && started.Replayed {
		err = c.registerReceiver(ctx, in, started.Session, started.Turn)
	}
	return started.Turn, started.Session, err
}

// startTask starts a task, or finds the one that the same message started. A client that has read
// frames of a task gets that task and never another.
func (c *call) startTask(ctx context.Context, in *message.Incoming) (turn.Started, error) {
	req := c.turnRequest(in)
	if in.Cursor == 0 {
		return c.Turns.Start(c.r.Context(), req)
	}
	started, ok, err := c.Turns.Repeated(ctx, req)
	if err == nil && !ok {
		err = server.InvalidCursor("Last-Event-ID", "Last-Event-ID resumes a stream, and this message has not started one. Leave it out.")
	}
	return started, err
}

// turnRequest returns the request for a turn of this caller.
func (c *call) turnRequest(in *message.Incoming) turn.Request {
	return c.caller.Request(in.Request, nil)
}

// read reads the current state of a task.
func (c *call) read(id uuid.UUID) (session.View, error) {
	ctx, stop := c.brief()
	defer stop()
	return c.view(ctx, id)
}

// await reads a task when it has ended or waits for an answer.
func (c *call) await(id uuid.UUID) (session.View, error) {
	v, err := c.read(id)
	if err != nil || task.StateOf(v.Turn).Rests() {
		return v, err
	}
	ctx, stop := c.Keys.While(c.r.Context(), c.caller.Key)
	defer stop()
	var rests bool
	_, err = c.AwaitTurn(ctx, begin(v), id, func(evs []event.Event) (*event.Event, error) {
		for i := range evs {
			if ev := &evs[i]; ev.Turn == id && (ev.Kind == event.KindInputRequired || ev.Kind == event.KindDone) {
				if v, err = c.read(id); err != nil {
					return nil, err
				}
				if rests = task.StateOf(v.Turn).Rests(); rests {
					return ev, nil
				}
			}
		}
		return nil, nil
	})
	if err != nil || rests {
		return v, err
	}
	return c.read(id)
}

// begin returns the position just before the first event of a turn.
func begin(v session.View) eventlog.From {
	return eventlog.From{Session: v.Turn.SessionID, Seq: v.Turn.StartSeq - 1, Since: v.Turn.CreatedAt}
}
