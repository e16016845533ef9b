package a2a

import (
	"context"
	"errors"
	"math"

	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/session"
)

// get returns a task.
func get(c *call.Call) (any, error) {
	s := task.Whole
	s.History = c.Params.Int("historyLength", -1, 0, math.MaxInt32)
	id, err := c.TaskID("id")
	if err != nil {
		return nil, err
	}
	ctx, stop := c.BriefContext()
	defer stop()
	v, err := c.View(ctx, id)
	if err != nil {
		return nil, err
	}
	t, err := c.Show(ctx, v, s)
	if err != nil {
		return nil, err
	}
	return c.Version.Task(t), nil
}

// cancelTask cancels a task, and only that task. Canceling a canceled task succeeds; a task that
// has ended otherwise cannot be canceled.
func cancelTask(c *call.Call) (any, error) {
	id, err := c.TaskID("id")
	if err != nil {
		return nil, err
	}
	ctx, stop := c.Brief(context.WithoutCancel(c.R.Context()))
	defer stop()
	if _, err := c.Turns.CancelTurn(ctx, c.Workspace(), id); err != nil {
		if errors.Is(err, session.ErrNoTurn) {
			err = rpc.NoTask(id.String())
		}
		return nil, err
	}
	v, err := c.View(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := task.StateOf(v.Turn); s != task.Canceled {
		return nil, &rpc.Error{Code: rpc.TaskNotCancelable, Message: "The task has ended: it cannot be canceled any more.",
			About: map[string]string{"taskId": id.String(), "state": c.Version.State(s)}}
	}
	t, err := c.Show(ctx, v, task.Whole)
	if err != nil {
		return nil, err
	}
	return c.Version.Task(t), nil
}
