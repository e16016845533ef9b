package openai

import (
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/turn"
)

// How long after its end a word still refers to a turn, if only the time decides.
const (
	lately   = time.Hour
	justNow  = 10 * time.Minute
	canceled = "The turn was canceled."
)

// speak carries out a word in a session; ok is false if the word has no meaning there.
func (s *api) speak(r *server.Request, q requestBody, said word) (rd reply, ok bool, err error) {
	b, err := s.bind(r, q, said)
	if err != nil || b.session == uuid.Nil {
		return rd, false, err
	}
	p, going, err := s.CurrentTurn(r.Context(), r.Caller, b.session)
	if err != nil {
		return rd, false, err
	}
	now := p.Turn
	if !going {
		ended, ok, err := s.ended(r, b.session)
		if err != nil {
			return rd, false, err
		}
		if said.kind == stop {
			rd = reply{Reading: server.Reading{Turn: ended.Turn, From: eventlog.From{Session: b.session}}, spoken: true, said: canceled}
			return rd, ok && ended.State == session.Canceled && ended.Ago < justNow, nil
		}
		if now = ended.Turn; b.plain && (b.asked == nil || b.asked.TurnID != now) {
			if b.asked = nil; ended.Asked != uuid.Nil && ended.Ago < lately {
				a, err := s.SessionApproval(r.Context(), r.Caller, b.session, ended.Asked)
				if err != nil {
					return rd, false, err
				}
				b.asked = &a
			}
		}
		if b.plain && ended.Ago >= lately {
			b.asked = nil
		}
	}
	switch {
	case said.kind == stop:
		return s.stop(r, p)
	case going && (b.asked == nil || b.asked.TurnID != now && (b.plain || said.kind == goOn)):
		return s.again(r, p, said)
	case b.asked == nil:
		return rd, false, nil
	case said.kind == goOn:
		return s.rest(r, *b.asked, true)
	}
	return s.decide(r, b, said)
}

// ended is the newest turn of a session that is not answering anything.
func (s *api) ended(r *server.Request, id uuid.UUID) (session.Ended, bool, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	return s.Sessions.Ended(ctx, r.Caller.Workspace.ID, id)
}

func (s *api) stop(r *server.Request, p server.TurnProgress) (rd reply, ok bool, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	got, err := s.Turns.Cancel(ctx, r.Caller.Workspace.ID, p.Session())
	return reply{Reading: p.Reading, spoken: true, said: canceled}, got.Canceled, err
}

// again returns the question that a turn waits for, or the rows after it, which the sender of the
// word has not seen. A turn without a question is read from its beginning.
func (s *api) again(r *server.Request, p server.TurnProgress, said word) (rd reply, ok bool, err error) {
	if p.Asked != nil {
		return s.rest(r, *p.Asked, true)
	}
	return reply{Reading: p.Reading, spoken: true}, said.kind == goOn, nil
}

// decide answers the question that the word is bound to, once. A repeated word gets the rows after
// the decision.
func (s *api) decide(r *server.Request, b binding, said word) (rd reply, ok bool, err error) {
	a := *b.asked
	other := said.number > 0 && said.number != b.number
	secret := a.Kind == event.InputSecret
	if a.Status == "pending" {
		if other || secret && said.kind == allow { // a value cannot come this way
			return s.rest(r, a, true)
		}
		answer := turn.Answer{Approval: a.ApprovalID, Outcome: event.Denied}
		switch {
		case secret && !r.Caller.Scopes.Allows(apikey.Secret):
			return rd, true, server.MissingScope(apikey.Secret)
		case secret:
			answer.Outcome = event.Skipped
		case said.kind == allow:
			answer.Outcome = event.Allowed
		}
		err := s.DecideApproval(r.Context(), r.Caller, answer)
		if f := fault.From(err); err == nil || f == nil || f.Code != fault.ApprovalAlreadyDecided && f.Code != fault.ApprovalExpired {
			if err != nil {
				return rd, true, err
			}
			return s.rest(r, a, false)
		}
		if a, err = s.SessionApproval(r.Context(), r.Caller, b.session, a.ApprovalID); err != nil {
			return rd, true, err
		}
	}
	rd, ok, err = s.rest(r, a, false)
	if !other {
		rd.note = standing(a, said)
	}
	return rd, ok, err
}

// standing returns how a question was decided, if that differs from the word.
func standing(a session.Approval, said word) string {
	yes := said.kind == allow
	switch event.Outcome(a.Status) {
	case event.Expired:
		return "The time to answer was over at " + a.ExpiresAt.UTC().Format("15:04 MST") + ": that counts as denied."
	case event.Allowed, event.Provided:
		if !yes {
			return "This was " + a.Status + " before, and the first answer stands."
		}
	case event.Denied, event.Skipped:
		if yes {
			return "This was " + a.Status + " before, and the first answer stands."
		}
	}
	return ""
}

// rest is what came after a question. Where it still waits and again is true, that is the
// question itself.
func (s *api) rest(r *server.Request, a session.Approval, again bool) (rd reply, ok bool, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	rd.spoken = true
	if rd.Reading, err = s.AfterApproval(ctx, r.Caller, a); err != nil {
		return rd, true, err
	}
	if rd.Again = again; !again || a.Status != "pending" {
		rd.next = 1
	}
	n, err := s.Sessions.Number(ctx, r.Caller.Workspace.ID, a.ApprovalID)
	rd.next += n
	return rd, true, err
}
