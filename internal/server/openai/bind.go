package openai

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
)

// binding is what a word is about. A word decides only the question that this chat was shown:
// sent once more, or too late, it is never for the next one.
type binding struct {
	session uuid.UUID         // uuid.Nil: the word is a message
	asked   *session.Approval // the question that the chat was shown; nil: none that is known
	number  int               // of that question
	// plain reports that only the word itself names the question: it is the first of the session,
	// unless the conversation shows another one.
	plain bool
}

// bind finds the question that a word answers: the one that the conversation shows. A request
// without assistant messages names it by the previous response, or by its number.
func (s *api) bind(r *server.Request, q requestBody, said word) (b binding, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	own := r.Caller.Workspace.ID
	if b.session = q.Session; b.session == uuid.Nil && q.CallerID != "" {
		var ok bool
		if b.session, ok, err = s.CallerSession(ctx, r.Caller, q.CallerID); err != nil || !ok {
			return binding{}, err
		}
	}
	if a, number, ok, err := s.repeated(ctx, r, q.last); err != nil {
		return b, err
	} else if ok {
		if b.session == uuid.Nil { // a chat without a name is known by what its key was asked
			t, _, err := s.Sessions.Answer(ctx, own, a.TurnID)
			if err != nil {
				return b, err
			}
			if t.KeyID != nil && *t.KeyID == r.Caller.Key {
				b.session = a.SessionID
			}
		}
		if a.SessionID == b.session {
			b.asked, b.number = &a, number
			return b, nil
		}
	}
	if b.session == uuid.Nil {
		return b, nil
	}
	var a session.Approval
	var ok bool
	switch {
	case q.spoke: // and showed another question, or none: the word is for that
		b.plain = said.number == 0
		return b, nil
	case q.follows != "":
		a, ok, err = s.shown(r, b.session, q.follows)
	case said.number == 0:
		b.plain = true
		if said.kind == allow || said.kind == deny {
			a, ok, err = s.Sessions.Numbered(ctx, own, b.session, 1)
		}
	}
	if said.number > 0 && !ok && err == nil {
		a, ok, err = s.Sessions.Numbered(ctx, own, b.session, said.number)
	}
	if err == nil && ok {
		b.asked = &a
		b.number, err = s.Sessions.Number(ctx, own, a.ApprovalID)
	}
	return b, err
}

// shown returns the question that a response has shown, or would have: its id holds the turn and
// the number.
func (s *api) shown(r *server.Request, in uuid.UUID, response string) (a session.Approval, ok bool, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	parts := strings.Split(strings.TrimPrefix(response, responsePrefix), "_")
	turn, err := uuid.Parse(parts[0])
	if err != nil {
		return a, false, nil
	}
	var n int
	if len(parts) > 1 {
		n, _ = strconv.Atoi(parts[1])
	}
	if n == 0 {
		a, ok, err = s.Sessions.First(ctx, r.Caller.Workspace.ID, turn)
	} else {
		a, ok, err = s.Sessions.Numbered(ctx, r.Caller.Workspace.ID, in, n)
	}
	return a, ok && a.TurnID == turn, err
}
