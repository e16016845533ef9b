package agui

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// answerInterrupts applies the answers to interrupts and streams the rows after the newest of them.
// A new message beside them is answered after that; if all interrupts are canceled it takes the
// place of an answer and ends their turn. Another turn in progress rejects the message as usual.
func (s *api) answerInterrupts(w http.ResponseWriter, r *server.Request, in input, thread uuid.UUID) error {
	q, err := s.pendingQuestions(r, thread, in.resume)
	if err != nil {
		return err
	}
	fresh, active, err := s.hasNewMessage(w, r, in, q.newest)
	switch {
	case err != nil:
		return err
	case fresh && in.said.err != nil:
		return in.said.err
	case fresh && !q.goesOn:
		if in.said.Session = thread; active { // otherwise another turn might be in progress, which was not canceled
			in.said.Multitask = turn.Interrupt
		}
		return s.sendMessage(w, r, in)
	}
	for _, a := range q.open {
		if err := s.DecideApproval(r.Context(), r.Caller, a); err != nil {
			return err
		}
	}
	rd, err := s.AfterApproval(r.Context(), r.Caller, q.newest)
	if err != nil {
		return err
	}
	rd.Again = true // a secret that is not set yet is requested again
	if fresh {
		if in.said.Session = thread; active { // it waits for the turn in progress
			in.said.Multitask = turn.Enqueue
		}
		if err := s.CountRequest(r.Context(), w, r.Caller, ratelimit.Messages); err != nil {
			return err
		}
		next, err := s.StartChatTurn(w, r, in.said.Request, in.said.sent)
		if err != nil {
			return s.busyError(w, in, err)
		}
		rd.Then = &next
	}
	in.Notices = q.notices
	return s.streamRun(w, r, in, rd)
}

// questions are the questions that a run answers, all of them checked before the first is decided.
type questions struct {
	newest  session.Approval
	open    []turn.Answer // answers to the pending ones
	goesOn  bool          // some are resolved, now or before; otherwise all of them are given up
	notices []Notice      // notices about those that were given up too late
}

func (s *api) pendingQuestions(r *server.Request, thread uuid.UUID, list []resume) (q questions, err error) {
	for i, rs := range list {
		asked, err := s.SessionApproval(r.Context(), r.Caller, thread, rs.id)
		if err != nil {
			return q, err
		}
		at := fmt.Sprintf("resume/%d/payload", i)
		r.Names["allowlist_pattern"] = at + "/pattern"
		a, ok, err := decisionOf(asked, rs, r.Caller, "/"+at)
		if err != nil {
			return q, err
		}
		late := rs.cancelled && (asked.Status == string(event.Allowed) || asked.Status == string(event.Provided))
		if late {
			q.notices = append(q.notices, Notice{Interrupt: rs.id.String(), Status: asked.Status,
				Message: "This interrupt was answered before: " + asked.Status + ". The first answer stands, and the turn continues with it."})
		}
		q.goesOn = q.goesOn || !rs.cancelled || late
		if i == 0 || asked.CreatedAt.After(q.newest.CreatedAt) {
			q.newest = asked
		}
		switch {
		case late:
		case ok && asked.Status == pending:
			q.open = append(q.open, a)
		case ok: // decided already: report whether the answers are equal
			if err := s.DecideApproval(r.Context(), r.Caller, a); err != nil {
				return q, err
			}
		}
	}
	return q, nil
}

// pending is the status of an open question.
const pending = "pending"

// decisionOf returns the decision in an answer to an interrupt; ok is false if there is nothing to
// decide: a secret is not set yet, or the interrupt that is given up has ended anyway.
func decisionOf(asked session.Approval, rs resume, c server.Caller, param string) (a turn.Answer, ok bool, err error) {
	a = rs.answer
	secret := asked.Kind == event.InputSecret
	switch {
	case asked.Kind == event.InputConnect: // only its link answers it
		return a, false, nil
	case rs.cancelled && (asked.Status == string(event.Expired) || asked.Status == "canceled"):
		return a, false, nil
	case rs.cancelled && secret && asked.Status == pending && !c.Scopes.Allows(apikey.Secret):
		return a, false, server.MissingScope(apikey.Secret)
	case rs.cancelled && secret:
		a.Outcome = event.Skipped
	case rs.cancelled:
		a.Outcome = event.Denied
	case secret && a.Outcome != "":
		return a, false, fault.Invalid(fault.Violation{Param: param + "/approved", Rule: "unknown",
			Message: "This interrupt asks for a secret, and this value does not answer it. " +
				"Send the value to its secret_url and resolve it without a payload, or cancel it to continue without the secret."})
	case secret:
		a.Outcome = event.Provided
		return a, asked.Status != pending, nil
	case a.Outcome == "":
		return a, false, fault.Invalid(fault.Violation{Param: param + "/approved", Rule: "required",
			Message: `The payload of an approval is {"approved": true} or {"approved": false}.`})
	}
	return a, true, nil
}

// hasNewMessage reports whether a run that answers an interrupt also brings a new message. A
// message that was sent before is new if its turn began after the turn of the interrupt: it came
// with this run, which is repeated. Clients send the whole conversation, and without tool calls it
// ends with the message of the interrupted turn, or of one that began since. Those are recognized
// by their text; a skill's turn has none, so the message counts as its own. active reports that the
// interrupted turn has not ended.
func (s *api) hasNewMessage(w http.ResponseWriter, r *server.Request, in input, asked session.Approval) (fresh, active bool, err error) {
	if in.said == nil {
		return false, false, nil
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	view, err := s.Sessions.Turn(ctx, r.Caller.Workspace.ID, asked.TurnID)
	if err != nil {
		return false, false, fmt.Errorf("read the turn that has asked: %w", err)
	}
	active = session.State(view.Turn.State).IsActive()
	if in.said.err == nil {
		before, ok, err := s.RepeatedTurn(ctx, r.Caller, in.said.Request, in.said.sent)
		if ok || err != nil {
			return before.From.Seq >= view.Turn.StartSeq, active, err
		}
	}
	if in.said.behind {
		return false, active, nil
	}
	if view.Asked.Skill != nil {
		request.ReportIgnored(w, append(in.ignored, "messages"))
		return false, active, nil
	}
	if view.Asked.Content == nil || in.said.isMessageOf(view) {
		return false, active, nil
	}
	if active {
		return true, true, nil
	}
	others, _, err := s.Sessions.Turns(ctx, r.Caller.Workspace.ID,
		session.ViewQuery{Session: &view.Turn.SessionID, States: activeStates, Limit: 1})
	if err != nil {
		return false, false, fmt.Errorf("look for a turn in progress: %w", err)
	}
	return len(others.Data) == 0 || !in.said.isMessageOf(others.Data[0]), false, nil
}

// activeStates are the states of a turn in progress.
var activeStates = []session.State{session.Queued, session.Running, session.Waiting}

// isMessageOf reports whether a message has the text of the turn's message.
func (m *said) isMessageOf(v session.View) bool {
	return v.Asked.Content != nil && *v.Asked.Content == event.Plain(m.text)
}
