package a2a

import (
	"context"
	"errors"
	"math"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/filestore"
)

// view reads a task's turn.
func (c *call) view(ctx context.Context, id uuid.UUID) (session.View, error) {
	v, err := c.Sessions.Turn(ctx, c.workspace(), id)
	if errors.Is(err, session.ErrNoTurn) {
		err = rpc.NoTask(id.String())
	}
	return v, err
}

// show returns a task, with fresh addresses of its files.
func (c *call) show(ctx context.Context, v session.View, s task.Shape) (*task.Task, error) {
	files, err := c.files(ctx, v)
	return task.Of(c.base, v, files, s), err
}

func (c *call) files(ctx context.Context, v session.View) (filestore.Files, error) {
	files, err := c.Files.OfTurns(ctx, c.workspace(), []uuid.UUID{v.Turn.ID})
	return files[v.Turn.ID], err
}

// get returns a task.
func (c *call) get() (any, error) {
	s := task.Whole
	s.History = c.params.Int("historyLength", -1, 0, math.MaxInt32)
	id, err := c.taskID("id")
	if err != nil {
		return nil, err
	}
	ctx, stop := c.brief()
	defer stop()
	v, err := c.view(ctx, id)
	if err != nil {
		return nil, err
	}
	t, err := c.show(ctx, v, s)
	if err != nil {
		return nil, err
	}
	return c.version.Task(t), nil
}

// cancel cancels a task, and only that task. Canceling a canceled task succeeds; a task that has
// ended otherwise cannot be canceled.
func (c *call) cancel() (any, error) {
	id, err := c.taskID("id")
	if err != nil {
		return nil, err
	}
	ctx, stop := c.Brief(context.WithoutCancel(c.r.Context()))
	defer stop()
	if _, err := c.Turns.CancelTurn(ctx, c.workspace(), id); err != nil {
		if errors.Is(err, session.ErrNoTurn) {
			err = rpc.NoTask(id.String())
		}
		return nil, err
	}
	v, err := c.view(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := task.StateOf(v.Turn); s != task.Canceled {
		return nil, &rpc.Error{Code: rpc.TaskNotCancelable, Message: "The task has ended: it cannot be canceled any more.", About: map[string]string{"taskId": id.String(), "state": c.version.State(s)}}
	}
	t, err := c.show(ctx, v, task.Whole)
	if err != nil {
		return nil, err
	}
	return c.version.Task(t), nil
}
