package openaiapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// complete answers the last message of a conversation.
func (s *server) complete(w http.ResponseWriter, r *dialect.Request) error {
	body, raw, err := wire.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	return s.answer(w, r, wire.Checks{}, dialect.Given(body), raw, func(a About, _ uuid.UUID) telling { return NewTelling(a) })
}

// telling is a projection whose answer can also come in one piece.
type telling interface {
	dialect.Projection
	Say(text string) []any
	Completion() (status int, answer any)
}

// answer answers a request in the shape that tell makes.
func (s *server) answer(w http.ResponseWriter, r *dialect.Request, c wire.Checks, given map[string]json.RawMessage, raw []byte, tell func(About, uuid.UUID) telling) error {
	q, err := s.parse(r, c, given)
	if err != nil {
		return err
	}
	if chore(r.Header, q.text) {
		return fault.New(fault.InvalidRequestBody, "This is a task of Open WebUI's own, a title or the like, and no message for the agent. Set another task model in its settings.")
	}
	release, err := s.Door.Hold(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	if len(q.ignored) > 0 {
		w.Header().Set("X-Parley-Ignored", strings.Join(q.ignored, ", "))
	}
	rd, said, err := s.reply(w, r, q, raw)
	if err != nil {
		return helped(err)
	}
	t := tell(About{ID: "chatcmpl-" + rd.Turn.String(), Model: q.model, Created: time.Now().Unix(), Session: rd.Session(),
		Usage: q.usage, Structured: q.structured, Base: s.Door.Base(r.Request)}, rd.Turn)
	switch {
	case said != "" && q.stream:
		return s.Tell(w, append(t.Begin(), t.Say(said)...))
	case q.stream:
		return s.Stream(w, r, rd, t)
	case said != "":
		t.Begin()
		t.Say(said)
	default:
		if err := s.Collect(r, rd, t); err != nil {
			w.Header().Set("X-Should-Retry", "false") // OpenAI's clients send again what failed with 5xx, and would start a second turn
			return err
		}
	}
	status, answer := t.Completion()
	if status != http.StatusOK {
		w.Header().Set("X-Should-Retry", "false")
	}
	return door.WriteJSON(w, status, answer)
}

// chore reports whether Open WebUI wants something for itself. Its prompts for titles, tags
// and the like all begin so.
func chore(h http.Header, text string) bool {
	if !strings.HasPrefix(text, "### Task:\n") {
		return false
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Openwebui-") {
			return true
		}
	}
	return false
}

// The words that a turn in progress waits for or listens to.
const (
	allow = "allow"
	deny  = "deny"
	goOn  = "continue"
	stop  = "cancel"
)

// reply finds what is to be read: the rest of a turn that the message speaks to, or the turn
// that it starts. Where said is not empty, that is all there is to say.
func (s *server) reply(w http.ResponseWriter, r *dialect.Request, q request, raw []byte) (rd dialect.Reading, said string, err error) {
	word := strings.ToLower(strings.Trim(q.text, " \t\r\n.!`'\""))
	if word == allow || word == deny || word == goOn || word == stop {
		p, ok, err := s.progress(r, q.Request)
		if err != nil {
			return rd, "", err
		}
		if ok {
			rd, said, ok, err = s.word(r, p, word)
			if ok || err != nil {
				return rd, said, err
			}
		}
	}
	rd, err = s.Start(w, r, q.Request, raw)
	return rd, "", err
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
func (s *server) word(r *dialect.Request, p dialect.Progress, word string) (rd dialect.Reading, said string, ok bool, err error) {
	rd = p.Reading
	if p.Asked != nil {
		rd.After = p.Asked.ApprovalID
	}
	switch {
	case word == goOn:
		return rd, "", true, nil
	case word == stop:
		ctx, cancel := s.Door.Brief(r.Context())
		defer cancel()
		got, err := s.Turns.Cancel(ctx, r.Caller.Workspace.ID, rd.Session())
		return rd, "The turn was canceled.", got.Canceled, err
	case p.Asked == nil || p.Asked.Status != "pending":
		return rd, "", false, nil
	}
	answer := turn.Answer{Approval: p.Asked.ApprovalID, Outcome: event.Denied}
	switch {
	case p.Asked.Kind == event.InputSecret && word == allow: // a value cannot come this way
		return rd, "", false, nil
	case p.Asked.Kind == event.InputSecret:
		if answer.Outcome = event.Skipped; !r.Caller.Scopes.Allows(apikey.Secret) {
			return rd, "", true, door.Lacks(apikey.Secret)
		}
	case word == allow:
		answer.Outcome = event.Allowed
	}
	return rd, "", true, s.Decide(r.Context(), r.Caller, answer)
}

// helped tells somebody who cannot send anything but messages what to do about a turn that is
// in the way.
func helped(err error) error {
	f := fault.From(err)
	if f == nil || f.Code != fault.TurnInProgress {
		return err
	}
	told := *f
	told.Message = "This conversation is still busy with an earlier message, and this one was not taken. " +
		"Send `continue` to read on, `cancel` to end it, or, where it has asked, `allow` or `deny`."
	return &told
}
