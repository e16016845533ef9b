package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// sendMessage starts a turn and waits for what it comes to. A message that was sent before
// finds its turn; one that comes with the answer to a question goes on behind that.
func (s *server) sendMessage(ctx context.Context, c *call) (result, error) {
	m := c.args.Message(c.args.without(), c.args.fields)
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	var err error
	if m.Hash, err = c.args.hash(); err != nil {
		return result{}, err
	}
	if c.req.Params.RequestState != "" {
		if m.LastEvent, err = cursorOf(c.req.Params.RequestState); err != nil {
			return result{}, err
		}
	}
	if _, err := s.door.Count(ctx, c.caller, limit.Messages); err != nil {
		return result{}, err
	}
	release, err := s.door.Hold(ctx, c.caller)
	if err != nil {
		return result{}, err
	}
	defer release()
	started, err := s.start(ctx, c, m.Request)
	if err != nil {
		return result{}, err
	}
	w := &wait{server: s, call: c, started: started, keyed: m.IdempotencyKey != ""}
	if m.LastEvent > 0 {
		if res, over, err := w.answered(ctx); over || err != nil {
			return res, err
		}
	}
	return w.result(ctx)
}

// hash is what makes two calls the same: their arguments, however they are written down.
func (a *args) hash() ([]byte, error) {
	about := make(map[string]any)
	for _, m := range a.without("idempotency_key") {
		var v any
		if err := json.Unmarshal(m.Value, &v); err != nil {
			return nil, fmt.Errorf("read an argument: %w", err)
		}
		about[m.Name] = v
	}
	text, err := json.Marshal(about)
	if err != nil {
		return nil, fmt.Errorf("write arguments down: %w", err)
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

// cursorOf reads what a question had with it. It is the place of the question in the log and
// no secret: it leads to a turn that this very message has started, or nowhere.
func cursorOf(state string) (int64, error) {
	seq, err := strconv.ParseInt(state, 10, 64)
	if err != nil || seq <= 0 {
		return 0, &fault.Error{Code: fault.InvalidCursor, Param: "requestState", Message: "requestState is not what came with the question."}
	}
	return seq, nil
}

// start stores the message. When it returns, the message will be answered. A caller that
// leaves and a service that stops do not interrupt it: in the middle of a commit nobody
// could say whether the message is there.
func (s *server) start(ctx context.Context, c *call, req turn.Request) (turn.Started, error) {
	if err := ctx.Err(); err != nil {
		return turn.Started{}, err
	}
	ctx, cancel := s.door.Brief(context.WithoutCancel(ctx))
	defer cancel()
	req.Workspace, req.Key, req.Scopes = c.caller.Workspace, c.caller.Key, c.caller.Scopes.Expand().Strings()
	started, err := s.cfg.Turns.Start(ctx, req)
	if f := fault.From(err); f != nil {
		if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok {
			door.Link(c.base, c.caller.Workspace, t)
		}
	}
	return started, err
}

// decideApproval allows or denies what a turn wants to do.
func (s *server) decideApproval(ctx context.Context, c *call) (result, error) {
	a := turn.Answer{Approval: c.args.id("approval_id")}
	stay := false
	if raw := c.args.value("wait"); raw != nil {
		stay = c.args.Boolean("/wait", raw)
	}
	id := a.Approval
	a = c.args.Decision(c.args.without("approval_id", "wait"), wire.DecisionFields)
	a.Approval, a.Key = id, c.caller.Key
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	if stay {
		release, err := s.door.Hold(ctx, c.caller)
		if err != nil {
			return result{}, err
		}
		defer release()
	}
	d, err := s.decide(ctx, c, a)
	if err != nil {
		return result{}, err
	}
	out := decided{ApprovalID: d.ApprovalID, Status: d.Status, DecidedAt: d.DecidedAt, DecidedBy: d.DecidedBy, Pattern: d.Pattern, SessionID: d.SessionID, Already: d.Already}
	if !stay {
		return result{value: out}, nil
	}
	w, err := s.join(ctx, c, d)
	if err != nil {
		return result{}, err
	}
	res, err := w.result(ctx)
	out.Outcome = res.value
	return result{value: out, text: res.text, failed: res.failed}, err
}

func (s *server) decide(ctx context.Context, c *call, a turn.Answer) (turn.Decided, error) {
	ctx, cancel := s.door.Brief(context.WithoutCancel(ctx))
	defer cancel()
	return s.cfg.Turns.Decide(ctx, c.caller.Workspace.ID, a)
}

// join begins to wait for the turn that an answer sets going.
func (s *server) join(ctx context.Context, c *call, d turn.Decided) (*wait, error) {
	ctx, cancel := s.door.Brief(ctx)
	defer cancel()
	h, err := s.cfg.Sessions.Head(ctx, c.caller.Workspace.ID, d.SessionID)
	if err != nil {
		return nil, err
	}
	w := &wait{server: s, call: c, plain: true, started: turn.Started{Session: d.SessionID, Turn: d.TurnID}}
	if h.Turn == d.TurnID {
		w.started.From = session.From{Session: h.Session, Seq: h.StartSeq, Since: h.TurnAt}
	} else {
		w.past = true
	}
	return w, nil
}

// cancelSession ends the session's turn. Where there is none, that is no error.
func (s *server) cancelSession(ctx context.Context, c *call) (result, error) {
	id := c.args.id("session_id")
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.door.Brief(context.WithoutCancel(ctx))
	defer cancel()
	got, err := s.cfg.Turns.Cancel(ctx, c.caller.Workspace.ID, id)
	value := map[string]any{"canceled": got.Canceled, "runner_halt_deferred": got.HaltDeferred}
	if !got.Canceled {
		value["reason"] = "not_in_progress"
	}
	return result{value: value}, err
}

var errAnswerless = errors.New("the turn has ended without an answer")

// linked completes the addresses in a question: whoever reads it here knows no others.
func linked(base string, question json.RawMessage) json.RawMessage {
	var q map[string]json.RawMessage
	if json.Unmarshal(question, &q) != nil {
		return question
	}
	for _, name := range []string{"decide_url", "secret_url"} {
		var address string
		if json.Unmarshal(q[name], &address) == nil && address != "" {
			q[name], _ = json.Marshal(door.Absolute(base, address)) // of a string it cannot fail
		}
	}
	text, err := json.Marshal(q)
	if err != nil {
		return question
	}
	return text
}

// asked reads a question.
func asked(data json.RawMessage) (q event.InputRequired, err error) {
	if err := json.Unmarshal(data, &q); err != nil {
		return q, fmt.Errorf("read a question: %w", err)
	}
	return q, nil
}
