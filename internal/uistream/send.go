package uistream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// send answers the last message of a chat: a new one of the user, or the assistant's own with
// answers to what it has asked.
func (s *server) send(w http.ResponseWriter, r *dialect.Request) error {
	body, raw, err := wire.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	var c wire.Checks
	given := dialect.Given(body)
	delete(given, "caller_id")
	if id, ok := given["id"]; ok {
		given["caller_id"] = id
	}
	list := dialect.Messages(&c, given["messages"])
	var req turn.Request
	var answers []turn.Answer
	if n := len(list) - 1; n >= 0 && list[n].Role == "assistant" {
		answers = responses(&c, fmt.Sprintf("/messages/%d/parts", n), list[n].Parts)
		req = dialect.Compose(&c, "-", given) // for the chat's name
	} else if i := dialect.Asked(&c, list); i >= 0 {
		req = dialect.Compose(&c, content(&c, fmt.Sprintf("/messages/%d", i), list[i]), given)
	}
	req.IdempotencyKey = c.Once(r.Header.Values("Idempotency-Key"))
	if err := c.Err(); err != nil {
		return err
	}
	release, err := s.Door.Hold(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	var rd dialect.Reading
	if answers != nil {
		rd, err = s.answer(r, req, answers)
	} else {
		rd, err = s.Start(w, r, req, raw)
	}
	if err != nil {
		return err
	}
	return s.tell(w, r, rd)
}

// content is the text of a message, which has parts since the AI SDK 5.
func content(c *wire.Checks, param string, m dialect.Message) string {
	if m.Parts == nil {
		return dialect.Text(c, param+"/content", m.Content)
	}
	return dialect.Text(c, param+"/parts", m.Parts)
}

// responses are the answers that an assistant's message holds.
func responses(c *wire.Checks, param string, raw json.RawMessage) []turn.Answer {
	var parts []struct {
		State    string `json:"state"`
		Approval struct {
			ID       string `json:"id"`
			Approved *bool  `json:"approved"`
			Reason   string `json:"reason"`
		} `json:"approval"`
	}
	if raw == nil || json.Unmarshal(raw, &parts) != nil {
		c.Type(param, "array")
		return nil
	}
	var list []turn.Answer
	for i, p := range parts {
		if p.State != "approval-responded" {
			continue
		}
		at := fmt.Sprintf("%s/%d/approval", param, i)
		id, err := uuid.Parse(p.Approval.ID)
		if err != nil || p.Approval.Approved == nil {
			c.Add(fault.Violation{Param: at, Rule: "format", Message: "An approval that was responded to has the id of its request, and approved: true or false."})
			continue
		}
		a := turn.Answer{Approval: id, Outcome: event.Allowed}
		if !*p.Approval.Approved {
			a.Outcome, a.Reason = event.Denied, strings.TrimSpace(event.Plain(p.Approval.Reason))
			if utf8.RuneCountInString(a.Reason) > wire.MaxReason {
				c.Longer(at+"/reason", "characters", wire.MaxReason)
			}
		}
		if n := len(list); n == 0 || list[n-1].Approval != id { // one question can be about several calls
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		c.Add(fault.Violation{Param: param, Rule: "required", Message: "The last message is the assistant's own, and answers none of its requests for an approval: there is nothing to do."})
	}
	return list
}

// answer decides questions, and reads on after the last of them.
func (s *server) answer(r *dialect.Request, req turn.Request, answers []turn.Answer) (dialect.Reading, error) {
	id := req.Session
	if id == uuid.Nil {
		var ok bool
		var err error
		if id, ok, err = s.Session(r.Context(), r.Caller, req.CallerID); err != nil {
			return dialect.Reading{}, err
		} else if !ok {
			return dialect.Reading{}, fault.New(fault.ApprovalNotFound, "No approval %s in this conversation.", answers[0].Approval)
		}
	}
	var asked session.Approval
	for _, a := range answers {
		var err error
		if asked, err = s.Question(r.Context(), r.Caller, id, a.Approval); err != nil {
			return dialect.Reading{}, err
		}
		if err := s.Decide(r.Context(), r.Caller, a); err != nil {
			return dialect.Reading{}, err
		}
	}
	return s.Onward(r.Context(), r.Caller, asked)
}

// maxChat is how long the id of a chat may be, in bytes: it is a caller_id.
const maxChat = 255

// resume tells the turn in progress again, from its beginning.
func (s *server) resume(w http.ResponseWriter, r *dialect.Request) error {
	chat := r.PathValue("chatId")
	if !utf8.ValidString(chat) || strings.ContainsRune(chat, 0) || len(chat) > maxChat {
		return fault.Invalid(fault.Violation{Param: "/chatId", Rule: "format", Message: "The id of a chat is text in UTF-8 of at most 255 bytes."})
	}
	release, err := s.Door.Hold(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	id, ok, err := s.Session(r.Context(), r.Caller, chat)
	if err != nil {
		return err
	}
	var p dialect.Progress
	if ok {
		if p, ok, err = s.Progress(r.Context(), r.Caller, id); err != nil {
			return err
		}
	}
	if !ok { // also where the chat is new: the client asks before the first message
		header(w.Header())
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.tell(w, r, p.Reading)
}

// tell streams a reading. Where a secret is asked for it stays: nobody answers that here.
func (s *server) tell(w http.ResponseWriter, r *dialect.Request, rd dialect.Reading) error {
	header(w.Header())
	rd.Through = true
	return s.Stream(w, r, rd, NewTelling(rd, s.Door.Base(r.Request)))
}
