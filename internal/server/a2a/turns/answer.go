package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/turn"
)

// answered is the route of the idempotency keys of answers.
const answered = "a2aAnswer"

// continueTask applies a message to a task that waits for an answer. A repeated message has no
// second effect, whatever the task waits for by then.
func continueTask(c *call.Call, in *message.Incoming) (id, of uuid.UUID, err error) {
	id, ok := request.ID(in.Task)
	if !ok {
		return id, of, rpc.NoTask(in.Task)
	}
	ctx, stop := c.Brief(context.WithoutCancel(c.R.Context()))
	defer stop()
	v, err := c.View(ctx, id)
	if err != nil {
		return id, of, err
	}
	if in.Context != uuid.Nil && in.Context != v.Turn.SessionID || in.Made != "" && in.Made != task.ContextOf(v) {
		return id, of, fault.Invalid(fault.Violation{Param: "/message/contextId", Rule: "format", Message: "The task is in another context."})
	}
	if in.Cursor > 0 { // an answer whose stream cannot be resumed is not applied
		if _, err := findPlace(c, &look{view: v, from: fromCursor, cursor: in.Cursor}); err != nil {
			return id, of, err
		}
	}
	if _, _, err := c.Turns.Repeated(ctx, turnRequest(c, in)); err != nil { // an answer cannot have the id of a task's first message
		return id, of, err
	}
	_, _, replayed, err := c.Sessions.Once(ctx, onceOf(c, in), func(ctx context.Context) (int, []byte, error) {
		return http.StatusOK, []byte("{}"), answerQuestion(c, ctx, v, in)
	})
	if err == nil && replayed {
		err = registerReceiver(c, ctx, in, v.Turn.SessionID, id)
	}
	return id, v.Turn.SessionID, err
}

// onceOf returns the key of an answer.
func onceOf(c *call.Call, in *message.Incoming) session.Once {
	return session.Once{Workspace: c.Workspace(), Route: answered, Key: in.ID, Hash: in.Hash, Caller: c.Caller.Key}
}

// answerQuestion answers the question of a task.
func answerQuestion(c *call.Call, ctx context.Context, v session.View, in *message.Incoming) error {
	a, err := parseDecision(c, ctx, v, in)
	if err != nil {
		return err
	}
	if err := registerReceiver(c, ctx, in, v.Turn.SessionID, v.Turn.ID); err != nil {
		return err
	}
	_, err = c.Turns.Decide(ctx, c.Workspace(), a)
	return err
}

// parseDecision returns the answer in a message, for the task as it is. A message with other
// content is not an answer: its meaning would be ambiguous.
func parseDecision(c *call.Call, ctx context.Context, v session.View, in *message.Incoming) (a turn.Answer, err error) {
	var q event.InputRequired
	if v.Question != nil {
		if err := json.Unmarshal(v.Question, &q); err != nil {
			return a, fmt.Errorf("read the question: %w", err)
		}
	}
	if in.Code != nil {
		asked, ok, err := c.Sessions.ApprovalByCode(ctx, c.Workspace(), v.Turn.SessionID, *in.Code)
		if err != nil {
			return a, err
		}
		if !ok {
			return a, fault.New(fault.ApprovalNotFound, "The task has asked no question with the code %s. Nothing was decided.", *in.Code)
		}
		in.Approval = asked.ApprovalID
	}
	if in.Approval != uuid.Nil {
		asked, err := c.Sessions.Approval(ctx, c.Workspace(), in.Approval)
		if err != nil {
			return a, err
		}
		if asked.TurnID != v.Turn.ID {
			return a, fault.New(fault.ApprovalNotFound, "The task has asked no question %s.", in.Approval)
		}
		q.ApprovalID, q.What = asked.ApprovalID, asked.Kind
	}
	switch {
	case q.ApprovalID == uuid.Nil:
		return a, notWaiting(c, ctx, v, in)
	case q.What == event.InputSecret:
		return a, unsupportedError(v, "The task asks for a secret, which is never taken here: a person gives it at secret_url.")
	case q.What == event.InputConnect:
		return a, unsupportedError(v, "The task waits for access to a tool server, which the user grants at connect_url.")
	case q.What == event.InputTool:
		return a, unsupportedError(v, "The task waits for results of tools of the program that sent the message. That program posts them to "+
			"reply_url.")
	case in.Decision == nil:
		return a, fault.Invalid(fault.Violation{Param: message.PartsAt, Rule: "required", Message: fmt.Sprintf(
			"The task waits for a decision: send the text `allow %[1]s` or `deny %[1]s`, or the data part {\"decision\":\"allow\"} or "+
				"{\"decision\":\"deny\"}.", session.CodeOf(q.ApprovalID))})
	case in.Besides != "":
		return a, fault.Invalid(fault.Violation{Param: in.Besides, Rule: "exactly_one",
			Message: "An answer is one data part with a decision, and nothing else. Nothing was decided: send the decision by itself."})
	case in.ID == q.ApprovalID.String(): // the id of the question itself
		return a, rpc.ReusedMessage()
	}
	var checks request.Checks
	a = checks.Decision(in.Decision, append([]string{"approval_id"}, request.DecisionFields...))
	a.Approval, a.Key, a.Scopes = q.ApprovalID, c.Caller.Key, c.Caller.Scopes.Expand().Strings()
	if err := checks.Err(); err != nil {
		return a, err
	}
	if a.Pattern != "" && !c.Caller.Scopes.Allows(apikey.Chat) { // it applies to every conversation of the workspace
		return a, server.MissingScope(apikey.Chat)
	}
	return a, nil
}

// notWaiting returns the error for an answer to a task that does not wait. If another answer came
// first, the error has its outcome.
func notWaiting(c *call.Call, ctx context.Context, v session.View, in *message.Incoming) error {
	if in.Decision != nil {
		page, err := c.Sessions.Approvals(ctx, c.Workspace(), session.ApprovalQuery{Session: &v.Turn.SessionID, Limit: 100})
		if err != nil {
			return err
		}
		for _, a := range page.Data { // newest first
			if a.TurnID == v.Turn.ID {
				how := fmt.Sprintf("its last question was answered before, and is %s", a.Status)
				if a.Status == string(event.Expired) {
					how = "its last question was not answered in time and has expired"
				}
				e := unsupportedError(v, "The task waits for no answer any more: "+how+". That stands.")
				e.About["approval_id"], e.About["status"] = a.ApprovalID.String(), a.Status
				return e
			}
		}
	}
	if task.StateOf(v.Turn).IsTerminal() {
		return unsupportedError(v, "The task has ended. Send a message with its contextId alone to continue the conversation.")
	}
	return unsupportedError(v, "The task waits for nothing. Send a message with its contextId alone and multitask_strategy in its metadata.")
}

// unsupportedError returns the error for a message that the state of a task does not allow.
func unsupportedError(v session.View, why string) *rpc.Error {
	return &rpc.Error{Code: rpc.Unsupported, Message: why, About: map[string]string{"taskId": v.Turn.ID.String()}}
}
