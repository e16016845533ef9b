package chat

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// postResults posts the results at the end of a conversation to the turn that waits for them, which
// the calls identify, and continues its answer.
func (s Service) postResults(w http.ResponseWriter, r *server.Request, q requestBody, raw []byte) (rd Reply, err error) {
	in, err := s.chatSession(r, q)
	if err != nil {
		return rd, err
	}
	if of, ok := parseForcedCall(q.results[0].ToolUseID); ok {
		return s.followForcedCall(w, r, q, raw, in, of)
	}
	choice := q.Options.ToolChoice
	if q.Options.Forced != nil {
		choice = turn.ToolsRequired
	}
	var posted session.Posted
	rd.Reading, posted, err = s.ContinueTurn(r.Context(), r.Caller, server.Results{Session: in, List: q.results, Choice: &choice})
	rd.Spoken = true
	switch f := fault.From(err); {
	case f != nil && (f.Code == fault.ToolCallNotFound || f.Code == fault.InsufficientScope): // of a turn of another key
		return rd, unknownCall(q.results[0].ToolUseID)
	case err != nil:
		return rd, err
	case len(posted.Open) > 0:
		return rd, fault.Invalid(fault.Violation{Param: "/messages", Rule: "required",
			Message: "Results are missing for these calls: " + strings.Join(posted.Open, ", ") + ". Send the results of all calls of the answer."})
	}
	return rd, nil
}

func unknownCall(id string) error {
	return fault.Invalid(fault.Violation{Param: "/messages", Rule: "unknown",
		Message: fmt.Sprintf("No call %.80q waits for a result in this chat. Use the ids of the tool calls of the answer before.", id)})
}

// chatSession returns the session of a named chat, uuid.Nil for other chats.
func (s Service) chatSession(r *server.Request, q requestBody) (uuid.UUID, error) {
	if q.Session != uuid.Nil || q.CallerID == "" {
		return q.Session, nil
	}
	id, ok, err := s.CallerSession(r.Context(), r.Caller, q.CallerID)
	if err == nil && !ok {
		err = unknownCall(q.results[0].ToolUseID)
	}
	return id, err
}

// The call that a structured answer is sent as has an id made of the turn's.
const callPrefix = "call_"

func forcedCallID(turn uuid.UUID) string { return callPrefix + hex.EncodeToString(turn[:]) }

func parseForcedCall(id string) (turn uuid.UUID, ok bool) {
	text, ok := strings.CutPrefix(id, callPrefix)
	raw, err := hex.DecodeString(text)
	if !ok || err != nil || len(raw) != len(turn) {
		return turn, false
	}
	return uuid.UUID(raw), true
}

// followForcedCall starts a turn with the result of a call that was a structured answer: its turn
// has ended.
func (s Service) followForcedCall(w http.ResponseWriter, r *server.Request, q requestBody, raw []byte, in, of uuid.UUID) (rd Reply,
	err error) {
	p, err := s.FindTurn(r.Context(), r.Caller, of)
	switch {
	case errors.Is(err, server.ErrNoTurn), err == nil && (p.Forced == nil || in != uuid.Nil && in != p.Session()):
		return rd, unknownCall(q.results[0].ToolUseID)
	case err != nil:
		return rd, err
	}
	if n := len(q.results); n > 1 { // the call is the only one of its answer
		return rd, unknownCall(q.results[n-1].ToolUseID)
	}
	if q.Session, q.CallerID, q.Command = p.Session(), "", resultText(p.Forced.Name,
		q.results[0]); utf8.RuneCountInString(q.Command) > request.MaxCommand {
		var c request.Checks
		c.Longer("/messages", "characters", request.MaxCommand)
		return rd, c.Err()
	}
	if err := s.CountRequest(r.Context(), w, r.Caller, ratelimit.Messages); err != nil {
		return rd, err
	}
	rd.Reading, err = s.StartChatTurn(w, r, q.Request, raw)
	return rd, err
}

// isAbandoned reports whether the turn in the way of a message waits for results that its chat
// client does not send: the client has sent the user's next message instead.
func (s Service) isAbandoned(r *server.Request, q requestBody, err error) bool {
	f := fault.From(err)
	if f == nil || f.Code != fault.TurnInProgress || q.Multitask != "" {
		return false
	}
	busy, _ := f.Detail.Turn.(*session.ActiveTurn)
	if busy == nil || busy.Pending == nil || busy.Pending.Kind != event.InputTool {
		return false
	}
	o, err := s.TurnOptions(r.Context(), r.Caller, busy.TurnID)
	return err == nil && o.EndUnanswered
}
