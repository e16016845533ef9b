package uistream

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// send answers the last message of a chat: a new one of the user, or the assistant's own with
// answers to what it has asked.
func (s *server) send(w http.ResponseWriter, r *dialect.Request) error {
	body, _, err := wire.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	q, err := parse(body, r)
	if err != nil {
		return err
	}
	release, err := s.Door.Hold(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	if len(q.ignored) > 0 {
		w.Header().Set("X-Parley-Ignored", strings.Join(q.ignored, ", "))
	}
	var rd dialect.Reading
	if len(q.answers) > 0 {
		rd, err = s.answer(r, q)
	} else if err = s.Door.Ration(r.Context(), w, r.Caller, limit.Messages); err == nil {
		rd, err = s.Start(w, r, q.Request, q.sent)
	}
	if err != nil {
		return err
	}
	return s.tell(w, r, rd)
}

// answer decides what waits, and reads on after the newest of the questions. Answers to what
// was decided long ago are part of the message like its text, whoever decided it; only where
// nothing waits does the newest of them have to be the one that stands.
func (s *server) answer(r *dialect.Request, q request) (dialect.Reading, error) {
	id := q.Session
	if id == uuid.Nil {
		var ok bool
		var err error
		if id, ok, err = s.Session(r.Context(), r.Caller, q.CallerID); err != nil {
			return dialect.Reading{}, err
		} else if !ok {
			return dialect.Reading{}, fault.New(fault.ApprovalNotFound, "No approval %s in this conversation.", q.answers[0].Approval)
		}
	}
	var newest session.Approval
	var last turn.Answer
	var open []turn.Answer
	for i, a := range q.answers {
		asked, err := s.Question(r.Context(), r.Caller, id, a.Approval)
		if err != nil {
			return dialect.Reading{}, err
		}
		if i == 0 || asked.CreatedAt.After(newest.CreatedAt) {
			newest, last = asked, a
		}
		if asked.Status == "pending" {
			open = append(open, a)
		}
	}
	if len(open) == 0 {
		open = append(open, last)
	}
	for _, a := range open {
		if err := s.Decide(r.Context(), r.Caller, a); err != nil {
			return dialect.Reading{}, err
		}
	}
	return s.Onward(r.Context(), r.Caller, newest)
}

// tell streams a reading. Where a secret is asked for it stays: nobody answers that here.
func (s *server) tell(w http.ResponseWriter, r *dialect.Request, rd dialect.Reading) error {
	header(w.Header())
	rd.Through = true
	return s.Stream(w, r, rd, NewTelling(rd, s.Door.Base(r.Request)))
}
