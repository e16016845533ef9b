package aisdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// approvalID names one call of a question. The client keeps an answer with each call, and a
// question is decided as a whole: for a question about one call, the question's own id is enough.
func approvalID(question uuid.UUID, call, calls int) string {
	if calls == 1 {
		return question.String()
	}
	return question.String() + ":" + strconv.Itoa(call+1)
}

// verdict is a message's answer to one question: the answers to its calls together.
type verdict struct {
	turn.Answer                   // denied if one of its calls is
	param       string            // path of the first of them
	ids         map[string]answer // the answers by id
}

// answer is a part that answers for one call.
type answer struct {
	param    string
	State    any             `json:"state"`
	Approval json.RawMessage `json:"approval"`

	// The call as the client has it; nil means not specified.
	Type     any             `json:"type"`
	ToolName json.RawMessage `json:"toolName"`
	Input    json.RawMessage `json:"input"`
}

// parseVerdicts returns the answers in an assistant's message, by their questions.
func parseVerdicts(c *request.Checks, param string, raw json.RawMessage) (list []*verdict) {
	found := answeredParts(raw)
	questions := make(map[uuid.UUID]*verdict)
	for _, i := range slices.Sorted(maps.Keys(found)) {
		part := found[i]
		part.param = fmt.Sprintf("%s/%d", param, i)
		at := part.param + "/approval"
		if !c.Object(at, part.Approval) {
			continue
		}
		given := request.ByName(request.Members(part.Approval))
		name, _ := c.Text(at+"/id", request.OrEmptyText(given["id"]))
		question, _, _ := strings.Cut(name, ":")
		id := c.UUID(at+"/id", request.QuoteText(question))
		v, ok := questions[id]
		if !ok {
			v = &verdict{Answer: turn.Answer{Approval: id, Outcome: event.Allowed}, param: at, ids: make(map[string]answer)}
			questions[id], list = v, append(list, v)
		}
		v.ids[strings.ToLower(name)] = part
		why := request.DenialReason(c, at+"/reason", given["reason"])
		if c.Boolean(at+"/approved", given["approved"]) {
			continue
		}
		v.Outcome = event.Denied
		if why != "" && !strings.Contains(v.Reason, why) {
			v.Reason = strings.TrimSpace(v.Reason + "\n" + why)
		}
	}
	return list
}

// checkQuestion checks the answers against the question: every id is that of one of its calls, and
// a pending question is allowed only by an answer to each of them, unchanged.
func (v *verdict) checkQuestion(asked session.Approval) error {
	var ask event.InputRequired
	if asked.Request != nil {
		if err := json.Unmarshal(asked.Request, &ask); err != nil {
			return fmt.Errorf("read the question: %w", err)
		}
	}
	unknown := maps.Clone(v.ids)
	delete(unknown, asked.ApprovalID.String()) // as a denial it is clear, whatever the question asks
	var open []string
	allows := v.Outcome == event.Allowed && asked.Status == "pending"
	for i, op := range ask.Operations {
		id := approvalID(asked.ApprovalID, i, len(ask.Operations))
		delete(unknown, id)
		part, ok := v.ids[id]
		if !ok {
			open = append(open, op.Tool+" ("+id+")")
		}
		if !ok || !allows {
			continue
		}
		if member := part.editedMember(op); member != "" {
			return fault.Invalid(fault.Violation{Param: part.param + "/" + member, Rule: "unknown",
				Message: "The " + member + " of a call cannot be edited, and nothing was decided. Approve it as it is, or deny it and say in reason " +
					"what should change."})
		}
	}
	for id := range unknown {
		if asked.Request != nil {
			return fault.New(fault.ApprovalNotFound, "No approval %s in this conversation.", request.Short(id))
		}
	}
	if allows && len(open) > 0 {
		return fault.Invalid(fault.Violation{Param: v.param, Rule: "required", Message: fmt.Sprintf(
			"The agent asks about %d calls at once, and they run together or not at all: answer each of them. Nothing was decided. Without an "+
				"answer: %s.", len(ask.Operations), strings.Join(open, ", "))})
	}
	return nil
}

// editedMember returns the member of a part that differs from the call, or "".
func (a answer) editedMember(op event.Operation) string {
	kind, _ := a.Type.(string)
	name, static := strings.CutPrefix(kind, "tool-") // a part of a tool that the page declares
	switch {
	case static && name != op.Tool:
		return "type"
	case isDifferent(a.ToolName, request.QuoteText(op.Tool)):
		return "toolName"
	case isDifferent(a.Input, op.Input):
		return "input"
	}
	return ""
}

// isDifferent reports whether the client's value differs from the call's.
func isDifferent(has, runs json.RawMessage) bool {
	var theirs, ours any
	if has == nil || strictjson.Unmarshal(has, &theirs) != nil || json.Unmarshal(runs, &ours) != nil {
		return false
	}
	return !reflect.DeepEqual(theirs, ours) // with numbers as JavaScript encodes them
}

// answerQuestions decides the pending questions, posts the results and streams the rows after the
// newest of their questions.
func (s *api) answerQuestions(r *server.Request, q requestBody) (rd server.Reading, err error) {
	id := q.Session
	if id == uuid.Nil {
		var ok bool
		if id, ok, err = s.CallerSession(r.Context(), r.Caller, q.CallerID); err != nil {
			return rd, err
		} else if !ok && len(q.answers) > 0 {
			return rd, fault.New(fault.ApprovalNotFound, "No approval %s in this conversation.", q.answers[0].Approval)
		} else if !ok {
			return rd, fault.New(fault.ToolCallNotFound, "No call %s in this conversation.", request.Short(q.results[0].ToolUseID))
		}
	}
	if err := s.checkResults(r, id, q.results); err != nil {
		return rd, err
	}
	if len(q.answers) > 0 {
		if rd, err = s.decideQuestions(r, id, q.answers); err != nil {
			return rd, err
		}
	}
	if len(q.results) == 0 {
		return rd, nil
	}
	after, _, err := s.ContinueTurn(r.Context(), r.Caller, server.Results{Session: id, List: q.results})
	if err == nil && (rd.Turn == uuid.Nil || bytes.Compare(after.After[:], rd.After[:]) > 0) { // ids are in the order of time
		rd = after
	}
	return rd, err
}

// checkResults rejects results of calls that the agent has not made in this chat, before anything of
// the message has an effect.
func (s *api) checkResults(r *server.Request, id uuid.UUID, results []turn.ToolResult) error {
	if len(results) == 0 {
		return nil
	}
	ids := make([]string, len(results))
	for i, res := range results {
		ids[i] = res.ToolUseID
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	own, err := s.Sessions.OwnCalls(ctx, r.Caller.Workspace.ID, id, ids)
	if err != nil {
		return err
	}
	for _, call := range ids {
		if _, ok := own[call]; !ok {
			return fault.New(fault.ToolCallNotFound, "No call %s in this conversation.", request.Short(call))
		}
	}
	return nil
}

// decideQuestions decides the pending questions. Answers to questions decided earlier are part of
// the message like its text; only if no question is pending must the newest of them equal the
// decision.
func (s *api) decideQuestions(r *server.Request, id uuid.UUID, answers []*verdict) (server.Reading, error) {
	var newest session.Approval
	var last *verdict
	var open []*verdict
	for _, v := range answers {
		asked, err := s.SessionApproval(r.Context(), r.Caller, id, v.Approval)
		if err == nil {
			err = v.checkQuestion(asked)
		}
		if err != nil {
			return server.Reading{}, err
		}
		if last == nil || asked.CreatedAt.After(newest.CreatedAt) {
			newest, last = asked, v
		}
		if asked.Status == "pending" {
			open = append(open, v)
		}
	}
	if len(open) == 0 {
		open = append(open, last)
	}
	for _, v := range open {
		if err := s.DecideApproval(r.Context(), r.Caller, v.Answer); err != nil {
			return server.Reading{}, err
		}
	}
	return s.AfterApproval(r.Context(), r.Caller, newest)
}

// answeredParts returns the parts of a message with an answered approval, by index.
func answeredParts(raw json.RawMessage) map[int]answer {
	var parts []json.RawMessage
	_ = strictjson.Unmarshal(raw, &parts) // a value that is not an array has no parts
	found := make(map[int]answer)
	for i, p := range parts {
		var part answer
		if strictjson.Unmarshal(p, &part) == nil && part.State == "approval-responded" {
			found[i] = part
		}
	}
	return found
}
