package agui

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// answer takes the answers to interrupts, and tells what comes after the newest of them. A new
// message beside them is answered behind that; where all of them are given up it is said in
// place of an answer, and ends their turn.
func (s *server) answer(w http.ResponseWriter, r *dialect.Request, in input, thread uuid.UUID, raw []byte) error {
	q, err := s.questions(r, thread, in.resume)
	if err != nil {
		return err
	}
	fresh, active, err := s.fresh(w, r, in, q.newest)
	switch {
	case err != nil:
		return err
	case fresh && in.said.err != nil:
		return in.said.err
	case fresh && !q.resolved:
		if in.said.Session = thread; active { // else another turn might be in progress, which nobody has given up
			in.said.Multitask = turn.Interrupt
		}
		return s.say(w, r, in, raw)
	}
	for _, a := range q.open {
		if err := s.Decide(r.Context(), r.Caller, a); err != nil {
			return err
		}
	}
	rd, err := s.Onward(r.Context(), r.Caller, q.newest)
	if err != nil {
		return err
	}
	rd.Again = true // a secret that is not there yet is asked for again
	if fresh {
		in.said.Session, in.said.Multitask = thread, turn.Enqueue
		if err := s.Door.Ration(r.Context(), w, r.Caller, limit.Messages); err != nil {
			return err
		}
		next, err := s.Start(w, r, in.said.Request, raw)
		if err != nil {
			return err
		}
		rd.Then = &next
	}
	return s.Stream(w, r, rd, NewTelling(in.About, rd))
}

// questions are what a run answers, all of them checked before the first is decided.
type questions struct {
	newest   session.Approval
	open     []turn.Answer // to those that wait
	resolved bool          // some are; the others are given up
}

func (s *server) questions(r *dialect.Request, thread uuid.UUID, list []resume) (q questions, err error) {
	for i, rs := range list {
		asked, err := s.Question(r.Context(), r.Caller, thread, rs.id)
		if err != nil {
			return q, err
		}
		at := fmt.Sprintf("resume/%d/payload", i)
		r.Names["allowlist_pattern"] = at + "/pattern"
		a, ok, err := decision(asked, rs, r.Caller, "/"+at)
		if err != nil {
			return q, err
		}
		q.resolved = q.resolved || !rs.cancelled
		if i == 0 || asked.CreatedAt.After(q.newest.CreatedAt) {
			q.newest = asked
		}
		switch {
		case ok && asked.Status == pending:
			q.open = append(q.open, a)
		case ok: // it decides nothing any more, and tells whether this is what stands
			if err := s.Decide(r.Context(), r.Caller, a); err != nil {
				return q, err
			}
		}
	}
	return q, nil
}

// pending is the status of a question that waits.
const pending = "pending"

// decision is what an answer to an interrupt means; ok is false where there is nothing to
// decide: a secret is not there yet, or what is given up is over anyway.
func decision(asked session.Approval, rs resume, c door.Caller, param string) (a turn.Answer, ok bool, err error) {
	a = rs.answer
	secret := asked.Kind == event.InputSecret
	switch {
	case rs.cancelled && (asked.Status == string(event.Expired) || asked.Status == "canceled"):
		return a, false, nil
	case rs.cancelled && secret && asked.Status == pending && !c.Scopes.Allows(apikey.Secret):
		return a, false, door.Lacks(apikey.Secret)
	case rs.cancelled && secret:
		a.Outcome = event.Skipped
	case rs.cancelled:
		a.Outcome = event.Denied
	case secret && a.Outcome != "":
		return a, false, fault.Invalid(fault.Violation{Param: param + "/approved", Rule: "unknown", Message: "This interrupt asks for a secret, and that is no answer to it. " +
			"Send the value to its secret_url and resolve it without a payload, or cancel it to go on without the secret."})
	case secret:
		a.Outcome = event.Provided
		return a, asked.Status != pending, nil
	case a.Outcome == "":
		return a, false, fault.Invalid(fault.Violation{Param: param + "/approved", Rule: "required", Message: `The payload of an approval is {"approved": true} or {"approved": false}.`})
	}
	return a, true, nil
}

// fresh reports whether a run that answers an interrupt brings a new message as well. Clients
// send the conversation along, and where they keep no tool calls it ends with the very message
// whose turn has asked. That one is known by its text; of a skill's turn, which has none,
// nobody can tell, and the message counts as that one. active says that the turn which has
// asked is not over.
func (s *server) fresh(w http.ResponseWriter, r *dialect.Request, in input, asked session.Approval) (fresh, active bool, err error) {
	if in.said == nil {
		return false, false, nil
	}
	ctx, cancel := s.Door.Brief(r.Context())
	defer cancel()
	view, err := s.Sessions.Turn(ctx, r.Caller.Workspace.ID, asked.TurnID)
	if err != nil {
		return false, false, fmt.Errorf("read the turn that has asked: %w", err)
	}
	if view.Asked.Skill != nil {
		ignore(w, append(in.ignored, "messages"))
		return false, false, nil
	}
	fresh = view.Asked.Content != nil && *view.Asked.Content != event.Plain(in.said.text)
	return fresh, session.State(view.Turn.State).Active(), nil
}
