// Package turns has the methods of A2A that start a turn, answer its question or stream it.
package turns

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// Send accepts a message and returns its task: at once, or when the task has ended or waits for an
// answer.
func Send(c *call.Call) (any, error) {
	in, err := c.Parser.Parse()
	if err != nil {
		return nil, err
	}
	if !in.Immediately {
		release, err := c.HoldStream(c.R.Context(), c.Caller)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	id, context, err := storeMessage(c, &in)
	if err != nil {
		return nil, err
	}
	read := awaitTask
	if in.Immediately {
		read = (*call.Call).Read
	}
	v, err := read(c, id)
	if err != nil {
		return nil, c.StoredError(id, context, err)
	}
	ctx, stop := c.BriefContext()
	defer stop()
	t, err := c.Show(ctx, v, task.Shape{Modes: in.Modes, History: in.History, Artifacts: true})
	if err != nil {
		return nil, c.StoredError(id, context, err)
	}
	return c.Version.Sent(t), nil
}

// SendStream accepts a message and streams its task.
func SendStream(c *call.Call) (any, error) {
	in, err := c.Parser.Parse()
	if err != nil {
		return nil, err
	}
	if in.Cursor, err = lastEventID(c); err != nil {
		return nil, err
	}
	release, err := c.HoldStream(c.R.Context(), c.Caller)
	if err != nil {
		return nil, err
	}
	defer release()
	id, context, err := storeMessage(c, &in)
	if err != nil {
		return nil, err
	}
	v, err := c.Read(id)
	if err != nil {
		return nil, c.StoredError(id, context, err)
	}
	look := &look{view: v, modes: in.Modes, history: in.History, from: fromStart}
	switch {
	case in.Cursor > 0:
		look.from, look.cursor = fromCursor, in.Cursor
	case in.Task != "":
		look.from, look.answers = fromNow, true
	}
	if err := streamTask(c, look); err != nil {
		return nil, c.StoredError(id, context, err)
	}
	return nil, nil
}

// storeMessage stores a message, or finds where it was stored before. It returns its task and
// context.
func storeMessage(c *call.Call, in *message.Incoming) (id, of uuid.UUID, err error) {
	if in.Task != "" {
		return continueTask(c, in)
	}
	if _, err := c.Count(c.R.Context(), c.Caller, ratelimit.Messages); err != nil {
		return id, of, err
	}
	if err := c.R.Context().Err(); err != nil {
		return id, of, err
	}
	ctx, stop := c.Brief(context.WithoutCancel(c.R.Context()))
	defer stop()
	if taken, err := c.Sessions.Answered(ctx, onceOf(c, in)); err != nil {
		return id, of, err
	} else if taken {
		return id, of, rpc.ReusedMessage()
	}
	started, err := startTask(c, ctx, in)
	if err == nil && started.Replayed {
		err = registerReceiver(c, ctx, in, started.Session, started.Turn)
	}
	return started.Turn, started.Session, err
}

// startTask starts a task, or finds the one that the same message started. A client that has read
// frames of a task gets that task and never another.
func startTask(c *call.Call, ctx context.Context, in *message.Incoming) (turn.Started, error) {
	req := turnRequest(c, in)
	if in.Cursor == 0 {
		return c.Turns.Start(c.R.Context(), req)
	}
	started, ok, err := c.Turns.Repeated(ctx, req)
	if err == nil && !ok {
		err = server.InvalidCursor("Last-Event-ID", "Last-Event-ID resumes a stream, and this message has not started one. Leave it out.")
	}
	return started, err
}

// turnRequest returns the request for a turn of this caller.
func turnRequest(c *call.Call, in *message.Incoming) turn.Request {
	req := in.Request
	if in.Made != "" {
		req.CallerID = task.ClientContext(c.Caller.Key, in.Made)
	}
	return c.Caller.Request(req, nil)
}

// awaitTask reads a task when it has ended or waits for an answer.
func awaitTask(c *call.Call, id uuid.UUID) (session.View, error) {
	v, err := c.Read(id)
	if err != nil || task.StateOf(v.Turn).Rests() {
		return v, err
	}
	ctx, stop := c.Keys.While(c.R.Context(), c.Caller.Key)
	defer stop()
	var rests bool
	_, err = c.AwaitTurn(ctx, beginOf(v), id, func(evs []event.Event) (*event.Event, error) {
		for i := range evs {
			if ev := &evs[i]; ev.Turn == id && (ev.Kind == event.KindInputRequired || ev.Kind == event.KindToolRequired ||
				ev.Kind == event.KindConnect || ev.Kind == event.KindDone) {
				if v, err = c.Read(id); err != nil {
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
	return c.Read(id)
}

// registerReceiver registers the receiver of a message for a task that the message did not start.
func registerReceiver(c *call.Call, ctx context.Context, in *message.Incoming, context, id uuid.UUID) error {
	if in.Callback == nil {
		return nil
	}
	if _, err := c.View(ctx, id); err != nil {
		return err
	}
	return c.Turns.AddCallback(ctx, c.Workspace(), context, id, *in.Callback)
}
