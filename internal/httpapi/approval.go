package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/vault"
)

const (
	maxReason  = 500 // characters
	maxPattern = 500 // characters
)

// approval is the question that the path names. What is not an id names none.
func (r *request) approval() (uuid.UUID, error) {
	text := mux.Vars(r.Request)["approvalId"]
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, fault.New(fault.ApprovalNotFound, "No such approval in this workspace: an id looks like %s.", uuid.Nil)
	}
	return id, nil
}

// listApprovals answers with one page of the inbox.
func (s *server) listApprovals(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	p := r.query()
	q := session.ApprovalQuery{Limit: p.limit(20), Cursor: p.one("cursor"), Session: p.uuid("session_id"),
		Status: p.enum("status", "pending", string(event.Allowed), string(event.Denied), string(event.Provided), string(event.Skipped), string(event.Expired), "canceled")}
	if err := p.err(); err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	page, err := s.cfg.Sessions.Approvals(ctx, r.workspace.ID, q)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// getApproval answers with one approval or secret request.
func (s *server) getApproval(w http.ResponseWriter, r *request) error {
	if err := r.bare(); err != nil {
		return err
	}
	id, err := r.approval()
	if err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	a, err := s.cfg.Sessions.Approval(ctx, r.workspace.ID, id)
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, a)
}

// decideApproval allows or denies what a turn wants to do.
func (s *server) decideApproval(w http.ResponseWriter, r *request) error {
	return s.decide(w, r, parseDecision)
}

// answerSecret provides a secret, or lets the turn go on without it.
func (s *server) answerSecret(w http.ResponseWriter, r *request) error {
	return s.decide(w, r, parseSecret)
}

// decided is the answer to a decision.
type decided struct {
	ApprovalID uuid.UUID        `json:"approval_id"`
	Kind       event.Input      `json:"kind"`
	KeyName    string           `json:"key_name,omitempty"` // of a secret request
	Status     string           `json:"status"`
	DecidedAt  *time.Time       `json:"decided_at"`
	DecidedBy  *session.Decider `json:"decided_by"`
	Pattern    *string          `json:"allowlist_pattern"`
	SessionID  uuid.UUID        `json:"session_id"`
	EventsURL  string           `json:"events_url"`
	Already    bool             `json:"already_decided"`
}

func (s *server) decide(w http.ResponseWriter, r *request, parse func(*checks, []member) turn.Answer) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	body, _, err := readBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.query().checks
	a := parse(&c, body)
	key := c.once(r.Header.Values("Idempotency-Key"))
	if err := c.err(); err != nil {
		return err
	}
	if a.Approval, err = r.approval(); err != nil {
		return err
	}
	a.Key = r.caller.Key
	about := []any{a.Approval, a.Outcome, a.Reason, a.Pattern} // and no secret
	return s.once(w, r, key, about, func(ctx context.Context) (any, error) {
		d, err := s.cfg.Turns.Decide(ctx, r.workspace.ID, a)
		if err != nil {
			return nil, err
		}
		return s.decided(r, d), nil
	})
}

func (s *server) decided(r *request, d turn.Decided) decided {
	var ask event.InputRequired
	_ = json.Unmarshal(d.Request, &ask) // of an erased session nothing is left
	at := session.ActiveTurn{SessionID: d.SessionID}
	s.link(r, &at)
	return decided{ApprovalID: d.ApprovalID, Kind: d.Kind, KeyName: ask.KeyName, Status: d.Status, DecidedAt: d.DecidedAt, DecidedBy: d.DecidedBy,
		Pattern: d.Pattern, SessionID: d.SessionID, EventsURL: at.EventsURL, Already: d.Already}
}

var decisionFields = []string{"decision", "allowlist_pattern", "reason"}

// parseDecision reads a decision about operations.
func parseDecision(c *checks, body []member) (a turn.Answer) {
	word := ""
	given := make(map[string]bool)
	for _, f := range body {
		param := pointer(f.name)
		given[f.name] = true
		switch f.name {
		case "decision":
			word = c.oneOf(param, f.value, "allow", "deny")
		case "allowlist_pattern":
			a.Pattern = c.word(param, f.value, maxPattern)
		case "reason":
			a.Reason = c.reason(param, f.value)
		default:
			c.unknown("field", param, f.name, decisionFields)
		}
	}
	a.Outcome = event.Denied
	if word == "allow" {
		a.Outcome = event.Allowed
	}
	switch {
	case !given["decision"]:
		c.add(fault.Violation{Param: "/decision", Rule: "required", Message: "decision is missing: allow or deny."})
	case word == "allow" && given["reason"]:
		c.add(fault.Violation{Param: "/reason", Rule: "requires", Message: "reason comes only with the decision deny.", Expected: "deny"})
	case word == "deny" && given["allowlist_pattern"]:
		c.add(fault.Violation{Param: "/allowlist_pattern", Rule: "requires", Message: "allowlist_pattern comes only with the decision allow.", Expected: "allow"})
	}
	return a
}

// reason reads a denial's reason; an empty one is none.
func (c *checks) reason(param string, raw json.RawMessage) string {
	s, ok := c.text(param, raw)
	if ok && utf8.RuneCountInString(s) > maxReason {
		c.longer(param, "characters", maxReason)
	}
	return strings.TrimSpace(event.Plain(s))
}

var secretFields = []string{"action", "value"}

// parseSecret reads the answer to a secret request. The value goes from here into the
// vault and nowhere else.
func parseSecret(c *checks, body []member) (a turn.Answer) {
	word := ""
	given := make(map[string]bool)
	for _, f := range body {
		param := pointer(f.name)
		given[f.name] = true
		switch f.name {
		case "action":
			word = c.oneOf(param, f.value, "provide", "skip")
		case "value":
			a.Value = c.secret(param, f.value)
		default:
			c.unknown("field", param, f.name, secretFields)
		}
	}
	a.Outcome = event.Skipped
	if word == "provide" {
		a.Outcome = event.Provided
	}
	switch {
	case !given["action"]:
		c.add(fault.Violation{Param: "/action", Rule: "required", Message: "action is missing: provide or skip."})
	case word == "provide" && !given["value"]:
		c.add(fault.Violation{Param: "/value", Rule: "required", Message: "value is missing: action provide needs it."})
	case word == "skip" && given["value"]:
		c.add(fault.Violation{Param: "/value", Rule: "requires", Message: "value comes only with the action provide.", Expected: "provide"})
	}
	return a
}

// secret reads a value, which must be kept as it was meant or not at all.
func (c *checks) secret(param string, raw json.RawMessage) vault.Value {
	text, ok := c.text(param, raw)
	if !ok {
		return vault.Value{}
	}
	if unsound(raw) {
		c.add(fault.Violation{Param: param, Rule: "format", Message: "value holds a NUL or half of a surrogate pair."})
	}
	value := vault.NewValue([]byte(text))
	for _, v := range vault.CheckValue(value) {
		c.add(v)
	}
	return value
}
