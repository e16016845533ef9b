package words

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/turn"
)

// The time after its end in which a word can refer to a turn by time alone.
const (
	lately   = time.Hour
	justNow  = 10 * time.Minute
	canceled = "The turn was canceled."
)

// Chat is the conversation that has a word.
type Chat struct {
	Session  uuid.UUID // uuid.Nil: not named
	CallerID string    // "": not named
	Last     string    // the last assistant message; "": none
}

// Reply is the response to a message.
type Reply struct {
	server.Reading
	Spoken bool   // the message is a word
	Note   string // text before it
	Said   string // if not empty, the whole text
}

// Speaker applies words.
type Speaker struct{ *server.Server }

// Speak applies a decision word in a session; ok is false if the word has no meaning there.
func (s Speaker) Speak(r *server.Request, c Chat, said Word) (rd Reply, ok bool, err error) {
	b, err := s.bindWord(r, c, said)
	if err != nil || b.session == uuid.Nil || said.Kind == goOn && said.Coded && b.coded == nil {
		return rd, false, err
	}
	if b.coded != nil && said.Kind != goOn {
		rd, err = s.decideApproval(r, *b.coded, said)
		return rd, true, err
	}
	p, going, err := s.CurrentTurn(r.Context(), r.Caller, b.session)
	switch {
	case err != nil:
		return rd, false, err
	case said.Kind == stop && going:
		return s.cancelTurn(r, p)
	case said.Kind == stop:
		return s.repeatCancel(r, b.session)
	case said.Kind == goOn:
		rd, ok, err = s.resumeReading(r, b, p, going)
	case going && p.Asked != nil && p.Asked.Status == pending:
		rd, err = s.rowsAfter(r, *p.Asked, true)
		rd.Note, ok = undecidedNote(said), true
	}
	if ok && err == nil {
		err = rd.CheckReader(r.Caller)
	}
	return rd, ok, err
}

const pending = "pending"

// undecidedNote returns the note for a question that a word did not decide.
func undecidedNote(said Word) string {
	if said.Coded {
		return fmt.Sprintf("Nothing was decided: the open question has another code than %s.", said.Code)
	}
	return "Nothing was decided: reply `allow` with the code alone, or `deny` with the code and a reason."
}

// resumeReading returns the rows after the approval that the conversation shows, or after the
// newest of the turn; a turn without an approval is read from its start.
func (s Speaker) resumeReading(r *server.Request, b binding, p server.TurnProgress, going bool) (rd Reply, ok bool, err error) {
	seen := cmp.Or(b.coded, b.shown)
	if going && (seen == nil || seen.TurnID != p.Turn) {
		if seen = p.Asked; seen == nil {
			return Reply{Reading: p.Reading, Spoken: true}, true, nil
		}
	}
	if seen == nil {
		ended, ok, err := s.newestEndedTurn(r, b.session)
		if err != nil || !ok || ended.Asked == uuid.Nil || ended.Ago >= lately {
			return rd, false, err
		}
		a, err := s.SessionApproval(r.Context(), r.Caller, b.session, ended.Asked)
		if err != nil {
			return rd, false, err
		}
		seen = &a
	}
	rd, err = s.rowsAfter(r, *seen, true)
	return rd, true, err
}

// newestEndedTurn returns the newest turn of a session without a turn in progress.
func (s Speaker) newestEndedTurn(r *server.Request, id uuid.UUID) (session.Ended, bool, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	return s.Sessions.Ended(ctx, r.Caller.Workspace.ID, id)
}

func (s Speaker) cancelTurn(r *server.Request, p server.TurnProgress) (rd Reply, ok bool, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	got, err := s.Turns.Cancel(ctx, r.Caller.Workspace.ID, p.Session())
	return Reply{Reading: p.Reading, Spoken: true, Said: canceled}, got.Canceled, err
}

// repeatCancel reports again that a turn was canceled.
func (s Speaker) repeatCancel(r *server.Request, in uuid.UUID) (rd Reply, ok bool, err error) {
	ended, ok, err := s.newestEndedTurn(r, in)
	rd = Reply{Reading: server.Reading{Turn: ended.Turn, From: eventlog.From{Session: in}}, Spoken: true, Said: canceled}
	return rd, ok && ended.State == session.Canceled && ended.Ago < justNow, err
}

// decideApproval decides an approval, once. A repeated word gets the rows after the decision.
func (s Speaker) decideApproval(r *server.Request, a session.Approval, said Word) (rd Reply, err error) {
	if a.Status == pending {
		if a.Kind == event.InputConnect { // only its link answers it
			return s.rowsAfter(r, a, true)
		}
		if a.Kind == event.InputSecret && said.Kind == allow { // a completion cannot contain a value
			return s.rowsAfter(r, a, true)
		}
		answer, err := answerOf(r, a, said)
		if err == nil {
			err = s.DecideApproval(r.Context(), r.Caller, answer)
		}
		if f := fault.From(err); err == nil || f == nil || f.Code != fault.ApprovalAlreadyDecided && f.Code != fault.ApprovalExpired {
			if err != nil {
				return rd, err
			}
			return s.rowsAfter(r, a, false)
		}
		if a, err = s.SessionApproval(r.Context(), r.Caller, a.SessionID, a.ApprovalID); err != nil {
			return rd, err
		}
	}
	rd, err = s.rowsAfter(r, a, false)
	rd.Note = earlierDecision(a, said)
	return rd, err
}

// answerOf returns the answer to an approval that a word expresses.
func answerOf(r *server.Request, a session.Approval, said Word) (answer turn.Answer, err error) {
	var c request.Checks
	answer = turn.Answer{Approval: a.ApprovalID, Outcome: event.Denied}
	switch {
	case a.Kind == event.InputSecret && !r.Caller.Scopes.Allows(apikey.Secret):
		return answer, server.MissingScope(apikey.Secret)
	case a.Kind == event.InputSecret:
		answer.Outcome = event.Skipped
	case said.Kind == allow:
		answer.Outcome = event.Allowed
	default:
		r.Names["reason"] = r.Names["command"]
		answer.Reason = request.DenialReason(&c, "/reason", request.QuoteText(said.Reason))
	}
	return answer, c.Err()
}

// earlierDecision returns how an approval was decided, if that differs from the word.
func earlierDecision(a session.Approval, said Word) string {
	yes := said.Kind == allow
	switch event.Outcome(a.Status) {
	case event.Expired:
		return "The approval expired at " + a.ExpiresAt.UTC().Format("15:04 MST") + ". It counts as denied."
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

// rowsAfter returns the rows after an approval. If the approval is pending and again is true, that
// is its question.
func (s Speaker) rowsAfter(r *server.Request, a session.Approval, again bool) (rd Reply, err error) {
	rd.Reading, err = s.AfterApproval(r.Context(), r.Caller, a)
	rd.Again, rd.Spoken = again, true
	return rd, err
}
