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
	maxIdempotencyKey  = 255 // characters
)

// message is a request body, checked.
type message struct {
	command  string
	callerID string
	session  uuid.UUID
	stream   bool
	limits   turn.Limits
	once     string // Idempotency-Key
}

// messageFields and limitFields are all the names that a body may have.
var (
	messageFields = []string{"command", "caller_id", "session_id", "stream", "limits"}
	limitFields   = []string{"max_response_seconds", "max_turns"}
)

// parseMessage checks a body against everything that is known without a database,
// and tells all that is wrong, after what was found wrong before.
func parseMessage(c checks, body []member, h http.Header) (message, error) {
	m := message{stream: true}
	commanded := false
	for _, f := range body {
		param := pointer(f.name)
		switch f.name {
		case "command":
			commanded = true
			m.command = c.command(param, f.value)
		case "caller_id":
			m.callerID = c.callerID(param, f.value)
		case "session_id":
			m.session = c.sessionID(param, f.value)
		case "stream":
			m.stream = c.boolean(param, f.value)
		case "limits":
			m.limits = c.limits(param, f.value)
		default:
			c.unknown("field", param, f.name, messageFields)
		}
	}
	if !commanded {
		c.add(fault.Violation{Param: "/command", Rule: "exactly_one", Message: "command is missing: say what the agent shall do."})
	}
	m.once = c.once(h.Values("Idempotency-Key"))
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

func (c *checks) sessionID(param string, raw json.RawMessage) uuid.UUID {
	s, ok := c.text(param, raw)
	if !ok {
		return uuid.Nil
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || id == uuid.Nil {
		c.add(fault.Violation{Param: param, Rule: "format", Message: "session_id is not a UUID.", Expected: "uuid"})
	}
	return id
}

func (c *checks) limits(param string, raw json.RawMessage) (l turn.Limits) {
	if len(raw) == 0 || raw[0] != '{' {
		c.typ(param, "object")
		return l
	}
	for _, f := range members(raw) {
		at := param + pointer(f.name)
		switch f.name {
		case "max_response_seconds":
			l.MaxResponseSeconds = c.integer(at, f.value, 1, maxResponseSeconds)
		case "max_turns":
			l.MaxTurns = c.integer(at, f.value, 1, maxTurns)
		default:
			c.unknown("field", at, f.name, limitFields)
		}
	}
	return l
}

// sendMessage starts a turn and answers with its events, or with its outcome. A
// message that was sent before finds its turn.
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
	cursor, _, err := cursorOf("Last-Event-ID", r.Header.Values("Last-Event-ID"))
	if err != nil {
		return err
	}
	answers := streamType
	if !m.stream {
		answers = jsonType
	}
	if err := accepts(r.Request, answers); err != nil {
		return err
	}
	started, err := s.start(r, m, raw, cursor)
	if err != nil {
		return err
	}
	if started.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if m.stream {
		return s.show(w, r, started, cursor)
	}
	return s.block(w, r, started)
}

// start stores the message. When it returns, the message will be answered. A caller
// that hangs up and a service that stops do not interrupt it: in the middle of a
// commit nobody could say whether the message is there.
func (s *server) start(r *request, m message, raw []byte, cursor int64) (turn.Started, error) {
	if err := r.Context().Err(); err != nil {
		return turn.Started{}, err
	}
	ctx, cancel := s.brief(context.WithoutCancel(r.Context()))
	defer cancel()
	hash := sha256.Sum256(raw)
	started, err := s.cfg.Turns.Start(ctx, turn.Request{
		Workspace: r.workspace, Key: r.caller.Key, Command: m.command, CallerID: m.callerID, Session: m.session, Limits: m.limits,
		Hash: hash[:], IdempotencyKey: m.once, LastEvent: cursor,
	})
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
		answer, err := s.outcome(r.Context(), started)
		if err != nil {
			return s.accepted(r, active(started), err)
		}
		if answer != nil && answer.LastSeq <= t.from.Seq { // the client has everything
			return s.close(w, r, t, func(f *frames) error { return f.done(false) })
		}
	}
	return s.stream(w, r, t)
}

// outcome is a turn's answer, nil while it is not there.
func (s *server) outcome(ctx context.Context, started turn.Started) (*session.Message, error) {
	ctx, cancel := s.brief(ctx)
	defer cancel()
	answer, err := s.cfg.Sessions.Answer(ctx, started.Turn)
	if err != nil || answer.Status == inProgress {
		return nil, err
	}
	return &answer, nil
}

const inProgress = "in_progress"
