package openaiapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/turn"
)

// The words that a turn in progress waits for or listens to.
const (
	allow = "allow"
	deny  = "deny"
	goOn  = "continue"
	stop  = "cancel"
)

// reply is what a message is answered with.
type reply struct {
	dialect.Reading
	spoken bool   // the message spoke to a turn in progress
	said   string // where it is not empty, that is all there is to say
}

// reply finds what is to be read: the rest of a turn that the message speaks to, or the turn
// that it starts.
func (s *server) reply(w http.ResponseWriter, r *dialect.Request, q request, raw []byte) (reply, error) {
	word := strings.ToLower(strings.Trim(typed(q.text), " \t\r\n.!`'\""))
	more := q.more && (q.Session != uuid.Nil || q.CallerID != "") // what the user said is in the session already
	if more {
		word = goOn
	}
	if word == allow || word == deny || word == goOn || word == stop {
		p, ok, err := s.progress(r, q.Request)
		if err != nil {
			return reply{}, err
		}
		if ok {
			rd, ok, err := s.word(r, p, word)
			if ok || err != nil {
				return rd, err
			}
		}
	}
	if more {
		return reply{}, fault.Invalid(fault.Violation{Param: "/messages", Rule: "required",
			Message: "The last message is the assistant's own, and nothing is in progress in this chat: there is nothing to answer. Send a message of the user."})
	}
	if err := s.Door.Ration(r.Context(), w, r.Caller, limit.Messages); err != nil {
		return reply{}, err
	}
	rd, err := s.Start(w, r, q.Request, raw)
	return reply{Reading: rd}, err
}

// progress is what goes on in the session that a request names; ok is false where nothing is.
func (s *server) progress(r *dialect.Request, req turn.Request) (p dialect.Progress, ok bool, err error) {
	id := req.Session
	if id == uuid.Nil {
		if req.CallerID == "" {
			return p, false, nil
		}
		if id, ok, err = s.Session(r.Context(), r.Caller, req.CallerID); err != nil || !ok {
			return p, false, err
		}
	}
	return s.Progress(r.Context(), r.Caller, id)
}

// word does what a word means to a turn in progress; ok is false where it means nothing.
func (s *server) word(r *dialect.Request, p dialect.Progress, word string) (rd reply, ok bool, err error) {
	rd = reply{Reading: p.Reading, spoken: true}
	if p.Asked != nil {
		rd.After = p.Asked.ApprovalID
	}
	switch {
	case word == goOn:
		rd.Again = true
		return rd, true, nil
	case word == stop:
		ctx, cancel := s.Door.Brief(r.Context())
		defer cancel()
		got, err := s.Turns.Cancel(ctx, r.Caller.Workspace.ID, rd.Session())
		rd.said = "The turn was canceled."
		return rd, got.Canceled, err
	case p.Asked == nil:
		return rd, false, nil
	}
	answer := turn.Answer{Approval: p.Asked.ApprovalID, Outcome: event.Denied}
	switch {
	case p.Asked.Kind == event.InputSecret && word == allow: // a value cannot come this way
		return rd, false, nil
	case p.Asked.Kind == event.InputSecret:
		if answer.Outcome = event.Skipped; !r.Caller.Scopes.Allows(apikey.Secret) {
			return rd, true, door.Lacks(apikey.Secret)
		}
	case word == allow:
		answer.Outcome = event.Allowed
	}
	return rd, true, s.Decide(r.Context(), r.Caller, answer)
}

// plainly says all that is wrong in the message of an error, for these clients show nothing
// else of it.
func plainly(do handler) handler {
	return func(w http.ResponseWriter, r *dialect.Request) error {
		err := r.Names.Told(do(w, r))
		r.Names = nil // what is told now are the client's names
		f := fault.From(err)
		if f == nil || len(f.Detail.Violations) < 2 {
			return err
		}
		told := *f
		var all []string
		for _, v := range f.Detail.Violations {
			all = append(all, v.Message)
		}
		if n := len(all) - 5; n > 0 {
			all = append(all[:5], fmt.Sprintf("(and %d more)", n))
		}
		told.Message = strings.Join(all, " ")
		return &told
	}
}

// helped tells somebody who cannot send anything but messages what to do about a turn that is
// in the way.
func helped(w http.ResponseWriter, err error) error {
	f := fault.From(err)
	if f == nil || f.Code != fault.TurnInProgress {
		return err
	}
	w.Header().Set("X-Should-Retry", "false") // OpenAI's clients would send it again for some seconds
	told := *f
	told.Message = "This conversation is still busy with an earlier message, and this one was not taken. " +
		"Send `continue` to read on, `cancel` to end it, or, where it has asked, `allow` or `deny`."
	return &told
}
