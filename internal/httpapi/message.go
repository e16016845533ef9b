package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

const (
	maxCommand         = 200_000 // characters
	maxCallerID        = 255     // bytes
	maxResponseSeconds = 3600
	maxTurns           = 200
	maxCost            = 1_000_000 // US dollars
	maxIdempotencyKey  = 255       // characters
)

// message is a request body, checked.
type message struct {
	turn.Request
	stream bool
}

// messageFields and limitFields are all the names that a body may have.
var (
	messageFields = []string{"command", "skill", "input", "secret_input", "caller_id", "session_id", "response_schema", "stream",
		"callback", "attachments", "multitask_strategy", "limits"}
	limitFields = []string{"max_response_seconds", "max_turns", "max_cost_usd"}
)

// parseMessage checks a body against everything that is known without a database,
// and tells all that is wrong, after what was found wrong before.
func parseMessage(c checks, body []member, h http.Header) (message, error) {
	var m message
	given := make(map[string]bool)
	for _, f := range body {
		param := pointer(f.name)
		given[f.name] = true
		switch f.name {
		case "command":
			m.Command = c.command(param, f.value)
		case "skill":
			m.Skill = c.skill(param, f.value)
		case "input":
			m.Input = c.input(param, f.value)
		case "secret_input":
			m.Secrets = c.secretInput(param, f.value)
		case "caller_id":
			m.CallerID = c.callerID(param, f.value)
		case "session_id":
			m.Session = c.uuid(param, f.value)
		case "response_schema":
			m.Schema = c.responseSchema(param, f.value)
		case "stream":
			m.stream = c.boolean(param, f.value)
		case "callback":
			m.Callback = c.callback(param, f.value)
		case "attachments":
			m.Attachments = c.attachments(param, f.value)
		case "multitask_strategy":
			m.Multitask = turn.Multitask(c.oneOf(param, f.value, string(turn.Reject), string(turn.Enqueue), string(turn.Interrupt)))
		case "limits":
			m.Limits = c.limits(param, f.value)
		default:
			c.unknown("field", param, f.name, messageFields)
		}
	}
	switch {
	case given["command"] && given["skill"]:
		c.add(fault.Violation{Param: "/skill", Rule: "exactly_one", Message: "Send either command or skill, not both."})
	case !given["command"] && !given["skill"]:
		c.add(fault.Violation{Param: "/command", Rule: "exactly_one", Message: "command or skill is missing: say what the agent shall do."})
	case given["input"] && !given["skill"]:
		c.add(fault.Violation{Param: "/input", Rule: "requires", Message: "input is for a skill; a command has none.", Expected: "skill"})
	}
	if !given["stream"] {
		m.stream = m.Callback == nil
	}
	m.IdempotencyKey = c.once(h.Values("Idempotency-Key"))
	return m, c.err()
}

// once reads the Idempotency-Key.
func (c *checks) once(values []string) string {
	if len(values) == 0 {
		return ""
	}
	if key := values[0]; len(values) == 1 && len(key) <= maxIdempotencyKey && printable(key) {
		return key
	}
	c.add(fault.Violation{Param: "/Idempotency-Key", Rule: "format", Message: fmt.Sprintf("Idempotency-Key must be 1 to %d printable ASCII characters, once.", maxIdempotencyKey)})
	return ""
}

func (c *checks) command(param string, raw json.RawMessage) string {
	s, ok := c.text(param, raw)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		c.add(fault.Violation{Param: param, Rule: "min_length", Message: "command is empty.", Expected: 1})
	case utf8.RuneCountInString(s) > maxCommand:
		c.add(fault.Violation{Param: param, Rule: "max_length", Message: fmt.Sprintf("command has more than %d characters.", maxCommand), Expected: maxCommand})
	}
	return s
}

// callerID refuses what could not be stored as it is: replaced, two callers could
// become one.
func (c *checks) callerID(param string, raw json.RawMessage) string {
	s, ok := c.text(param, raw)
	switch {
	case !ok:
	case s == "":
		c.add(fault.Violation{Param: param, Rule: "min_length", Message: "caller_id is empty. Leave it out for a new session.", Expected: 1})
	case len(s) > maxCallerID:
		c.add(fault.Violation{Param: param, Rule: "max_length", Message: fmt.Sprintf("caller_id has more than %d bytes.", maxCallerID), Expected: maxCallerID})
	case unsound(raw):
		c.add(fault.Violation{Param: param, Rule: "format", Message: "caller_id holds a NUL or half of a surrogate pair."})
	}
	return s
}

// sendMessage starts a turn and answers with its events, with its outcome, or, where
// that is reported to a callback, with where to find it. A message that was sent
// before finds its turn.
func (s *server) sendMessage(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, streamType, jsonType); err != nil {
		return err
	}
	body, raw, err := readBody(w, r.Request)
	if err != nil {
		return err
	}
	m, err := parseMessage(r.query().checks, body, r.Header)
	if err != nil {
		return err
	}
	if m.LastEvent, _, err = cursorOf("Last-Event-ID", r.Header.Values("Last-Event-ID")); err != nil {
		return err
	}
	answers := streamType
	if !m.stream {
		answers = jsonType
	}
	if err := accepts(r.Request, answers); err != nil {
		return err
	}
	if m.stream || m.Callback == nil {
		release, err := s.hold(r)
		if err != nil {
			return err
		}
		defer release()
	}
	started, err := s.start(r, m.Request, raw)
	if err != nil {
		return err
	}
	if started.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	switch {
	case m.stream:
		return s.show(w, r, started, m.LastEvent)
	case m.Callback != nil:
		return s.accept(w, r, started)
	}
	return s.block(w, r, started)
}

// start stores the message. When it returns, the message will be answered. A caller
// that hangs up and a service that stops do not interrupt it: in the middle of a
// commit nobody could say whether the message is there.
func (s *server) start(r *request, req turn.Request, raw []byte) (turn.Started, error) {
	if err := r.Context().Err(); err != nil {
		return turn.Started{}, err
	}
	ctx, cancel := s.brief(context.WithoutCancel(r.Context()))
	defer cancel()
	hash := sha256.Sum256(raw)
	req.Workspace, req.Key, req.Scopes, req.Hash = r.workspace, r.caller.Key, r.caller.Scopes.Expand().Strings(), hash[:]
	started, err := s.cfg.Turns.Start(ctx, req)
	if f := fault.From(err); f != nil {
		if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok {
			s.link(r, t)
		}
	}
	return started, err
}

// show streams a turn that was just started, or that a client with a cursor comes
// back to.
func (s *server) show(w http.ResponseWriter, r *request, started turn.Started, cursor int64) error {
	t := &tail{from: started.From, turn: started.Turn}
	if cursor > 0 {
		t.head = &event.Open{SessionID: started.Session, FromSeq: new(t.from.Seq)}
		last, err := s.ended(r, started)
		if err != nil {
			return s.accepted(r, active(started), err)
		}
		if last > 0 && last <= t.from.Seq { // the client has everything
			return s.close(w, r, t, func(f *frames) error { return f.done(false) })
		}
	}
	return s.stream(w, r, t)
}

// ended is the seq of a turn's last event, 0 while it has none.
func (s *server) ended(r *request, started turn.Started) (int64, error) {
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	t, _, err := s.cfg.Sessions.Answer(ctx, r.workspace.ID, started.Turn)
	if err != nil || t.EndSeq == nil {
		return 0, err
	}
	return *t.EndSeq, nil
}

// queued is the answer to a message whose end a callback will report.
type queued struct {
	SessionID  uuid.UUID `json:"session_id"`
	TurnID     uuid.UUID `json:"turn_id"`
	CallbackID uuid.UUID `json:"callback_id"`
	Status     string    `json:"status"`
	EventsURL  string    `json:"events_url"`
	CancelURL  string    `json:"cancel_url"`
}

// accept answers 202.
func (s *server) accept(w http.ResponseWriter, r *request, started turn.Started) error {
	t := active(started)
	s.link(r, t)
	w.Header().Set("Location", t.EventsURL)
	return writeData(w, http.StatusAccepted, queued{started.Session, started.Turn, started.Callback, "queued", t.EventsURL, t.CancelURL})
}
