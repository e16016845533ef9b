package request

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of the fields of a message.
const (
	MaxCommand         = 200_000   // characters
	MaxCallerID        = 255       // bytes
	MaxInput           = 256 << 10 // bytes
	MaxSchema          = 64 << 10  // bytes
	MaxSecrets         = 20
	MaxName            = 128 // characters of a skill's or a secret's name
	MaxAttachments     = 20
	MaxURL             = 2048 // bytes
	MaxResponseSeconds = 3600
	MaxTurns           = 200
	MaxCost            = 1_000_000 // US dollars
	MaxIdempotencyKey  = 255       // characters
	MaxUser            = 256       // characters
	MaxMetadata        = 16        // pairs
	MaxMetadataKey     = 64        // characters
	MaxMetadataValue   = 512       // characters
)

// messageFields are the fields of a message.
var messageFields = []Field[Message]{
	{"command", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Command = c.Prose(at, raw, MaxCommand) }},
	{"agent", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Agent = c.Word(at, raw, MaxName) }},
	{"agent_version", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.AgentVersion = c.agentVersion(at, raw) }},
	{"skill", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Skill = c.Word(at, raw, MaxName) }},
	{"input", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Input = c.splitInput(at, raw) }},
	{"secret_input", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		for i, item := range c.Array(at, raw, MaxSecrets) {
			m.Secrets = append(m.Secrets, c.Word(at+"/"+strconv.Itoa(i), item, MaxName))
		}
	}},
	{"caller_id", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.CallerID = c.callerID(at, raw) }},
	{"session_id", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Session = c.UUID(at, raw) }},
	{"response_schema", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		m.Schema = c.smallObject(at, raw, MaxSchema)
	}},
	{"tools", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Tools = c.CallerTools(at, raw) }},
	{"stream", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Stream = c.Boolean(at, raw) }},
	{"callback", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Callback = c.parseCallback(at, raw) }},
	{"attachments", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		m.Attachments = c.parseAttachments(at, raw)
	}},
	{"multitask_strategy", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		m.Multitask = turn.Multitask(c.OneOf(at, raw, string(turn.Reject), string(turn.Enqueue), string(turn.Interrupt)))
	}},
	{"limits", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		ParseObject(c, at, raw, &m.Limits, limitFields)
	}},
	{"effort", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		m.Options.Model.Effort = c.OneOf(at, raw, agent.Efforts...)
	}},
	{"user", func(c *Checks, at string, raw json.RawMessage, m *Message) {
		m.Labels.User = c.Word(at, raw, MaxUser)
	}},
	{"metadata", func(c *Checks, at string, raw json.RawMessage, m *Message) { m.Labels.Metadata = c.Metadata(at, raw) }},
	{onceField, func(c *Checks, at string, raw json.RawMessage, m *Message) {
		m.IdempotencyKey = c.IdempotencyKey(at, raw)
	}},
}

// agentVersion parses the number of an agent's version, or "draft".
func (c *Checks) agentVersion(at string, raw json.RawMessage) agent.Which {
	if len(raw) > 0 && raw[0] == '"' {
		c.OneOf(at, raw, "draft")
		return agent.Draft
	}
	return agent.Which(c.Integer(at, raw, 1, math.MaxInt32))
}

// onceField is a field only where a protocol has no header for it.
const onceField = "idempotency_key"

var limitFields = []Field[turn.Limits]{
	{"max_response_seconds", func(c *Checks, at string, raw json.RawMessage, l *turn.Limits) {
		l.MaxResponseSeconds = c.Integer(at, raw, 1, MaxResponseSeconds)
	}},
	{"max_turns", func(c *Checks, at string, raw json.RawMessage, l *turn.Limits) {
		l.MaxTurns = c.Integer(at, raw, 1, MaxTurns)
	}},
	{"max_cost_usd", func(c *Checks, at string, raw json.RawMessage, l *turn.Limits) { l.MaxCostUSD = c.parseCost(at, raw) }},
}

var callbackFields = []Field[turn.Callback]{
	{"url", func(c *Checks, at string, raw json.RawMessage, to *turn.Callback) { to.URL = c.Word(at, raw, MaxURL) }},
	{"metadata", func(c *Checks, at string, raw json.RawMessage, to *turn.Callback) {
		to.Metadata = c.parsePairs(at, raw, callback.MaxMetadataKey, callback.MaxMetadataValue)
	}},
}

var attachmentFields = []Field[[]uuid.UUID]{
	{"file_id", func(c *Checks, at string, raw json.RawMessage, ids *[]uuid.UUID) {
		*ids = append(*ids, c.UUID(at, raw))
	}},
}

// smallObject returns an object of at most limit bytes.
func (c *Checks) smallObject(param string, raw json.RawMessage, limit int) json.RawMessage {
	if !c.Object(param, raw) {
		return nil
	}
	if len(raw) > limit {
		c.Longer(param, "bytes", limit)
		return nil
	}
	return raw
}

// splitInput splits a skill's inputs. Their values are validated against the skill's schema
// elsewhere.
func (c *Checks) splitInput(param string, raw json.RawMessage) map[string]json.RawMessage {
	if raw = c.smallObject(param, raw, MaxInput); raw == nil {
		return nil
	}
	return ByName(Members(raw))
}

// callerID rejects an id that cannot be stored unchanged: with replaced characters, two callers
// could become one.
func (c *Checks) callerID(param string, raw json.RawMessage) string {
	s, ok := c.Text(param, raw)
	switch {
	case !ok:
	case s == "":
		c.addViolation(param, "min_length", "caller_id is empty. Leave it out for a new session.", 1)
	case len(s) > MaxCallerID:
		c.Longer(param, "bytes", MaxCallerID)
	default:
		c.checkStorable(param, raw)
	}
	return s
}

func (c *Checks) parseAttachments(param string, raw json.RawMessage) (ids []uuid.UUID) {
	for i, item := range c.Array(param, raw, MaxAttachments) {
		at := param + "/" + strconv.Itoa(i)
		if given := ParseObject(c, at, item, &ids, attachmentFields); given != nil && !given["file_id"] {
			c.addViolation(at+"/file_id", "required", at[1:]+" has no file_id.", nil)
		}
	}
	return ids
}

// parseCallback parses an address, alone or with metadata.
func (c *Checks) parseCallback(param string, raw json.RawMessage) *turn.Callback {
	var to turn.Callback
	switch {
	case len(raw) > 0 && raw[0] == '"':
		to.URL = c.Word(param, raw, MaxURL)
		return &to
	case len(raw) == 0 || raw[0] != '{':
		c.addViolation(param, "type", `callback must be an address, or {"url": …, "metadata": …}.`, "object")
		return nil
	}
	if ParseObject(c, param, raw, &to, callbackFields); to.URL == "" && !c.hasViolation(param+"/url") {
		c.addViolation(param+"/url", "required", "callback has no url.", nil)
	}
	return &to
}

// parsePairs parses pairs of texts, with the limits of their characters.
func (c *Checks) parsePairs(param string, raw json.RawMessage, maxKey, maxValue int) map[string]string {
	if !c.Object(param, raw) {
		return nil
	}
	pairs := Given(Members(raw))
	if len(pairs) > MaxMetadata {
		c.addViolation(param, "max_properties", fmt.Sprintf("metadata has more than %d pairs.", MaxMetadata), MaxMetadata)
		return nil
	}
	meta := make(map[string]string, len(pairs))
	for _, f := range pairs {
		at := param + Pointer(f.Name)
		value, ok := c.Text(at, f.Value)
		switch {
		case !ok:
		case f.Name == "" || len([]rune(f.Name)) > maxKey || !text.IsStorable(f.Name):
			c.addViolation(param, "property_names", fmt.Sprintf("A key of metadata has 1 to %d characters.", maxKey), maxKey)
		case len([]rune(value)) > maxValue:
			c.Longer(at, "characters", maxValue)
		default:
			c.checkStorable(at, f.Value)
		}
		meta[f.Name] = value
	}
	return meta
}

// Metadata parses the metadata of a message or of a session.
func (c *Checks) Metadata(param string, raw json.RawMessage) map[string]string {
	return c.parsePairs(param, raw, MaxMetadataKey, MaxMetadataValue)
}

// parseCost parses an amount of US dollars.
func (c *Checks) parseCost(param string, raw json.RawMessage) *float64 {
	f, err, ok := c.parseNumber(param, raw, "number")
	switch {
	case !ok:
		return nil
	case f < 0:
		c.addViolation(param, "minimum", param[1:]+" must not be negative.", 0)
	case err != nil || f > MaxCost:
		c.addViolation(param, "maximum", fmt.Sprintf("%s must be at most %d.", param[1:], MaxCost), MaxCost)
	}
	return &f
}
