package agui

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// run tells a turn: the one that a message starts, the rest of the one that an answer lets go
// on, or the one that is in progress.
func (s *server) run(w http.ResponseWriter, r *dialect.Request) error {
	body, raw, err := wire.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	in, err := parse(body, r.Header)
	if err != nil {
		return err
	}
	release, err := s.Door.Hold(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	if len(in.ignored) > 0 {
		w.Header().Set("X-Parley-Ignored", strings.Join(in.ignored, ", "))
	}
	in.Base = s.Door.Base(r.Request)
	id, ok, err := s.thread(r, in.Thread)
	if err != nil {
		return err
	}
	var rd dialect.Reading
	switch {
	case in.message != nil:
		if ok {
			in.message.Session = id
		}
		rd, err = s.Start(w, r, *in.message, raw)
	case len(in.resume) > 0:
		rd, err = s.answer(r, id, in.resume)
		if f := fault.From(err); f != nil && f.Code.Type() != fault.Permission { // the interrupt cannot be answered any more: that is the outcome of this run
			t := NewTelling(in.About, rd)
			return s.Tell(w, append(t.Begin(), t.Fail(event.Error{Code: event.Code(f.Code), Message: f.Message})...))
		}
	default:
		rd, err = s.attach(r, id, ok)
	}
	if err != nil {
		return err
	}
	return s.Stream(w, r, rd, NewTelling(in.About, rd))
}

// thread finds the session of a thread: the one with that id, or the one that has the thread
// as its caller. ok is false where there is none yet.
func (s *server) thread(r *dialect.Request, thread string) (id uuid.UUID, ok bool, err error) {
	if id, err := uuid.Parse(thread); err == nil && len(thread) == 36 {
		ctx, cancel := s.Door.Brief(r.Context())
		defer cancel()
		_, err := s.Sessions.Head(ctx, r.Caller.Workspace.ID, id)
		if f := fault.From(err); f == nil {
			return id, err == nil, err
		}
	}
	return s.Session(r.Context(), r.Caller, thread)
}

// answer decides interrupts, and reads on after the last of them.
func (s *server) answer(r *dialect.Request, thread uuid.UUID, list []resume) (rd dialect.Reading, err error) {
	var asked session.Approval
	for _, rs := range list {
		if asked, err = s.Question(r.Context(), r.Caller, thread, rs.id); err != nil {
			return rd, err
		}
		a, ok, err := decision(asked, rs, r.Caller)
		if err != nil {
			return rd, err
		}
		if ok {
			if err := s.Decide(r.Context(), r.Caller, a); err != nil {
				return rd, err
			}
		}
	}
	return s.Onward(r.Context(), r.Caller, asked)
}

// decision is what an answer to an interrupt means; ok is false where there is nothing to
// decide: a secret was provided elsewhere, or what was cancelled is over.
func decision(asked session.Approval, rs resume, c door.Caller) (a turn.Answer, ok bool, err error) {
	a = rs.answer
	switch {
	case rs.cancelled && asked.Status != "pending":
		return a, false, nil
	case asked.Kind == event.InputSecret && !rs.cancelled:
		return a, false, nil
	case asked.Kind == event.InputSecret && !c.Scopes.Allows(apikey.Secret):
		return a, false, door.Lacks(apikey.Secret)
	case asked.Kind == event.InputSecret:
		a.Outcome = event.Skipped
	case rs.cancelled:
		a.Outcome = event.Denied
	case a.Outcome == "":
		return a, false, fault.Invalid(fault.Violation{Param: "/resume/payload/approved", Rule: "required", Message: "The payload of an approval is {\"approved\": true} or {\"approved\": false}."})
	}
	return a, true, nil
}

// attach reads the turn in progress from its beginning.
func (s *server) attach(r *dialect.Request, id uuid.UUID, ok bool) (dialect.Reading, error) {
	if ok {
		p, ok, err := s.Progress(r.Context(), r.Caller, id)
		if ok || err != nil {
			return p.Reading, err
		}
	}
	return dialect.Reading{}, fault.Invalid(fault.Violation{Param: "/messages", Rule: "required",
		Message: "The last message is not the user's, nothing is resumed, and nothing is in progress in this thread: there is nothing to tell."})
}
