// Package turns has the tools that act on turns: sending a message, deciding an approval,
// canceling. A call waits for the outcome of its turn, reports its progress, and ends with a
// question that the caller has to answer.
package turns

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/mcp/tools"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// Tools are the tools that act on turns.
type Tools struct{ *server.Server }

// Handlers returns the handlers by the names of their tools.
func (s Tools) Handlers() map[string]tools.Handler {
	return map[string]tools.Handler{
		"send_message":    s.sendMessage,
		"list_pending":    s.listPending,
		"decide_approval": s.decideApproval,
		"cancel_session":  s.cancelSession,
	}
}

// sendMessage starts a turn and waits for its result. A repeated message finds its turn; one with
// the answer to a question continues that turn and is not a message of its own.
func (s Tools) sendMessage(ctx context.Context, c *tools.Call) (tools.Result, error) {
	state, _ := c.Answers()
	if state == "" {
		if _, err := s.Count(ctx, c.Caller, ratelimit.Messages); err != nil {
			return tools.Result{}, err
		}
	}
	m := c.Args.Message(c.Args.Members, c.Fields)
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	var err error
	if m.Hash, err = hashArguments(c.Args); err != nil {
		return tools.Result{}, err
	}
	if state != "" {
		if m.LastEvent, err = parseState(state); err != nil {
			return tools.Result{}, err
		}
	}
	release, err := s.HoldStream(ctx, c.Caller)
	if err != nil {
		return tools.Result{}, err
	}
	defer release()
	started, err := s.startTurn(ctx, c, m.Request)
	if err != nil {
		return tools.Result{}, err
	}
	w := &wait{Tools: s, call: c, started: started, keyed: m.IdempotencyKey != ""}
	if m.LastEvent > 0 {
		w.started.From.Seq-- // so that a question which is still open is asked again
		if res, over, err := w.applyAnswers(ctx); over || err != nil {
			return res, err
		}
	}
	return w.awaitResult(ctx)
}

// hashArguments returns a hash that is equal for equal arguments, however they are encoded.
func hashArguments(args request.Fields) ([]byte, error) {
	about := make(map[string]any)
	for _, m := range args.Without("idempotency_key") {
		var v any
		dec := json.NewDecoder(bytes.NewReader(m.Value))
		dec.UseNumber() // keeps every digit
		if err := dec.Decode(&v); err != nil {
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

// parseState parses the request state of a question. It is the position of the question in the log
// and not a secret: it is valid only for the turn of this very message.
func parseState(state string) (int64, error) {
	seq, _, err := server.ParseCursor("requestState", []string{state})
	if err != nil || seq == 0 {
		return 0, wrongStateError()
	}
	return seq, nil
}

func wrongStateError() *fault.Error {
	return &fault.Error{Code: fault.InvalidCursor, Param: "requestState",
		Message: "requestState is not what came with a question to this very message. Send the message without requestState and " +
			"inputResponses to send it anew."}
}

// startTurn stores the message. After it returns, the message will be answered.
func (s Tools) startTurn(ctx context.Context, c *tools.Call, req turn.Request) (turn.Started, error) {
	started, err := s.StartTurn(ctx, c.Base, c.Caller, req, nil)
	f := fault.From(names.TranslateError(err))
	switch {
	case f == nil:
		return started, err
	case f.Code == fault.InvalidCursor:
		return started, wrongStateError()
	case f.Code == fault.TurnInProgress:
		f.Message = "The agent is still answering an earlier message in this conversation. Wait and read its answer with get_messages, " +
			"stop it with cancel_session, " +
			"or send this message with the multitask_strategy enqueue or interrupt."
	}
	if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok && t.Pending.IsForUser() {
		f.Message += " It waits for a person: list_pending shows what for."
	}
	return started, f
}

// names are the fields that have another name than over HTTP.
var names = request.Names{"Idempotency-Key": "idempotency_key"}
