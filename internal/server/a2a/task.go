package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/filestore"
)

// shape is the extent to which a caller wants to see a task.
type shape struct {
	modes     modes
	history   int // messages; negative: all
	artifacts bool
}

// whole is the complete task.
var whole = shape{modes: modes{true, true}, history: -1, artifacts: true}

// taskOf returns the task of a turn, as far as its rows describe it.
func taskOf(base string, v session.View, files filestore.Files, s shape) *task {
	t := &task{ID: v.Turn.ID, ContextID: v.Turn.SessionID, Status: status{State: stateOf(v.Turn), Timestamp: stamp(v.Turn.StateAt)}, Metadata: metadataOf(v)}
	t.History = historyOf(base, v, files.In, s.history)
	var q event.InputRequired
	switch {
	case v.Question != nil && json.Unmarshal(v.Question, &q) == nil:
		t.Status.Message = question(base, t, q)
	case v.Turn.Error != nil && v.Turn.EndSeq != nil:
		t.Status.Message = agentMessage(t, *v.Turn.EndSeq, textPart(cmp.Or(v.Answer.Failure, fmt.Sprintf("The task has ended with the error %s.", *v.Turn.Error))))
	}
	if s.artifacts {
		t.Artifacts = artifactsOf(base, v, files.Out, s.modes)
	}
	return t
}

func artifactsOf(base string, v session.View, files []event.File, m modes) []artifact {
	list := []artifact{}
	if text := v.Answer.Output; text != nil && *text != "" && m.text {
		list = append(list, artifact{answerID, answerID, []part{textPart(*text)}})
	}
	if v.Answer.StructuredResult != nil {
		list = append(list, artifact{resultID, resultID, []part{m.result(v.Answer.StructuredResult)}})
	}
	if len(files) > 0 {
		list = append(list, artifact{filesID, filesID, fileParts(base, files)})
	}
	return list
}

// historyOf returns the messages of a task: its first message, with its sender's id and its files.
// The agent's text is in the artifacts.
func historyOf(base string, v session.View, files []event.File, most int) []message {
	text := v.Asked.Content
	if text == nil || most == 0 {
		return nil
	}
	return []message{{MessageID: cmp.Or(v.Asked.Named, v.Asked.MessageID.String()), ContextID: v.Turn.SessionID, TaskID: v.Turn.ID, Role: user,
		Parts: append([]part{textPart(*text)}, fileParts(base, files)...)}}
}

func metadataOf(v session.View) map[string]any {
	m := make(map[string]any)
	for name, raw := range map[string]json.RawMessage{"usage": v.Answer.Usage, "references": v.Answer.References, "rejected_attachments": v.Turn.Rejected} {
		if raw != nil {
			m[name] = raw
		}
	}
	if v.Turn.Error != nil {
		m["error"] = map[string]any{"code": *v.Turn.Error, "recoverable": event.Code(*v.Turn.Error).Recoverable()}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// view reads a task's turn.
func (c *call) view(ctx context.Context, id uuid.UUID) (session.View, error) {
	v, err := c.Sessions.Turn(ctx, c.workspace(), id)
	if errors.Is(err, session.ErrNoTurn) {
		err = taskNotFoundError(id.String())
	}
	return v, err
}

// show returns a task, with fresh addresses of its files.
func (c *call) show(ctx context.Context, v session.View, s shape) (*task, error) {
	files, err := c.files(ctx, v)
	return taskOf(c.base, v, files, s), err
}

func (c *call) files(ctx context.Context, v session.View) (filestore.Files, error) {
	files, err := c.Files.OfTurns(ctx, c.workspace(), []uuid.UUID{v.Turn.ID})
	return files[v.Turn.ID], err
}

// get returns a task.
func (c *call) get() (any, error) {
	s := whole
	s.history = c.params.Int("historyLength", -1, 0, math.MaxInt32)
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
	return c.version.task(t), nil
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
			err = taskNotFoundError(id.String())
		}
		return nil, err
	}
	v, err := c.view(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := stateOf(v.Turn); s != canceled {
		return nil, &rpcError{Code: taskNotCancelable, Message: "The task has ended: it cannot be canceled any more.", about: map[string]string{"taskId": id.String(), "state": c.version.state(s)}}
	}
	t, err := c.show(ctx, v, whole)
	if err != nil {
		return nil, err
	}
	return c.version.task(t), nil
}
