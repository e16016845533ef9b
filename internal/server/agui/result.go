package agui

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// toolMessage is a message with the result of a call: of one of the client's own tools, or of one of
// the agent's, which the client has from an earlier run.
type toolMessage struct {
	turn.ToolResult
	last bool // only such messages follow
}

// parseToolMessages returns the results in a client's messages.
func parseToolMessages(c *request.Checks, raw json.RawMessage) (results []toolMessage) {
	var list []struct {
		Role       string          `json:"role"`
		ToolCallID string          `json:"toolCallId"`
		Content    json.RawMessage `json:"content"`
		Error      string          `json:"error"`
	}
	if strictjson.Unmarshal(raw, &list) != nil {
		return nil // such a message has a violation of its own, or is not a result
	}
	last := len(list)
	for last > 0 && list[last-1].Role == "tool" {
		last--
	}
	for i, m := range list {
		if m.Role != "tool" || m.ToolCallID == "" {
			continue
		}
		at, output := fmt.Sprintf("/messages/%d/content", i), request.OrEmptyText(m.Content)
		if m.Error != "" {
			at, output = fmt.Sprintf("/messages/%d/error", i), request.QuoteText(m.Error)
		} else if output[0] != '"' {
			output = request.QuoteText(request.MessageText(c, at, output))
		}
		results = append(results, toolMessage{c.ClientResult(at, m.ToolCallID, output, m.Error != ""), i >= last})
	}
	return results
}

// ownResults returns the results in the client's messages that are for the agent. If the last
// messages are results, they are all of calls of the thread. Before a new message of the user only a
// result that a turn waits for counts: the others are history.
func (s *api) ownResults(r *server.Request, in input, thread uuid.UUID) (results []turn.ToolResult, err error) {
	ids := make([]string, len(in.results))
	for i, m := range in.results {
		ids[i] = m.ToolUseID
	}
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	waiting, err := s.Sessions.OwnCalls(ctx, r.Caller.Workspace.ID, thread, ids)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, m := range in.results {
		switch waits, own := waiting[m.ToolUseID]; {
		case waits || own && m.last:
			results = append(results, m.ToolResult)
		case m.last && !own:
			others = append(others, m.ToolUseID)
		}
	}
	return results, s.checkCalls(r, thread, others)
}

// checkCalls rejects results of calls that the turn in progress has not made, if it waits for
// results. Otherwise they are history of the client and have no effect.
func (s *api) checkCalls(r *server.Request, thread uuid.UUID, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	p, ok, err := s.CurrentTurn(r.Context(), r.Caller, thread)
	if err != nil || !ok {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	v, err := s.Sessions.Turn(ctx, r.Caller.Workspace.ID, p.Turn)
	if err != nil || event.QuestionKind(v.Question) != event.InputTool {
		return err
	}
	calls, err := s.TurnCalls(r.Context(), r.Caller, p.Reading)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !calls[id] {
			return fault.New(fault.ToolCallNotFound, "The agent has made no call %q in this thread.", request.Short(id))
		}
	}
	return nil
}

// postResults posts results and streams the rest of their turn. A new message beside them is
// answered after that.
func (s *api) postResults(w http.ResponseWriter, r *server.Request, in input, thread uuid.UUID, results []turn.ToolResult) error {
	rd, _, err := s.ContinueTurn(r.Context(), r.Caller, server.Results{Session: thread, List: results})
	if err != nil {
		return err
	}
	if in.said != nil {
		in.said.Session, in.said.Multitask = thread, turn.Enqueue
		if err := s.CountRequest(r.Context(), w, r.Caller, ratelimit.Messages); err != nil {
			return err
		}
		next, err := s.StartChatTurn(w, r, in.said.Request, in.said.sent)
		if err != nil {
			return s.busyError(w, in, err)
		}
		rd.Then = &next
	}
	return s.streamRun(w, r, in, rd)
}
