package request

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of the fields of a message.
const (
	MaxInput       = 256 << 10 // bytes
	MaxSchema      = 64 << 10  // bytes
	MaxSecrets     = 20
	MaxName        = 128 // characters of a skill's or a secret's name
	MaxAttachments = 20
	MaxURL         = 2048 // bytes
)

// Longer records that a value exceeds its limit.
func (c *Checks) Longer(param, what string, limit int) {
	c.Add(fault.Violation{Param: param, Rule: "max_length", Message: fmt.Sprintf("%s has more than %d %s.", param[1:], limit, what), Expected: limit})
}

// Word parses a text of 1 to limit characters.
func (c *Checks) Word(param string, raw json.RawMessage, limit int) string {
	s, ok := c.Text(param, raw)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		c.Add(fault.Violation{Param: param, Rule: "min_length", Message: param[1:] + " is empty.", Expected: 1})
	case len([]rune(s)) > limit:
		c.Longer(param, "characters", limit)
	case !strictjson.IsText(raw):
		c.Add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " holds a NUL or half of a surrogate pair."})
	}
	return s
}

// Object reports whether a value is an object, and records a violation if it is not.
func (c *Checks) Object(param string, raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] == '{' {
		return true
	}
	c.Type(param, "object")
	return false
}

// Array parses the elements of an array of at most limit.
func (c *Checks) Array(param string, raw json.RawMessage, limit int) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		c.Type(param, "array")
		return nil
	}
	if len(list) > limit {
		c.Add(fault.Violation{Param: param, Rule: "max_items", Message: fmt.Sprintf("%s has more than %d items.", param[1:], limit), Expected: limit})
		return nil
	}
	return list
}

// OneOf parses one of the allowed words.
func (c *Checks) OneOf(param string, raw json.RawMessage, allowed ...string) string {
	s, ok := c.Text(param, raw)
	if !ok {
		return ""
	}
	v := fault.Violation{Param: param, Rule: "enum", Message: fmt.Sprintf("%s can be %s.", param[1:], strings.Join(allowed, ", "))}
	for _, a := range allowed {
		if a == s {
			return s
		}
		v.Allowed = append(v.Allowed, a)
	}
	c.Add(v)
	return ""
}

// ID parses an id in the one notation that the service uses. ok is false for any other text.
func ID(text string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == 36
}

// UUID parses an id, uuid.Nil if there is none.
func (c *Checks) UUID(param string, raw json.RawMessage) uuid.UUID {
	s, ok := c.Text(param, raw)
	if !ok {
		return uuid.Nil
	}
	id, ok := ID(s)
	switch {
	case !ok:
		c.Add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " is not a UUID.", Expected: "uuid"})
		return uuid.Nil
	case id == uuid.Nil:
		c.Add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " names nothing: there is nothing with this id.", Expected: "uuid"})
	}
	return id
}

func (c *Checks) skill(param string, raw json.RawMessage) string { return c.Word(param, raw, MaxName) }

// input splits a skill's inputs. Their values are validated against the skill's schema elsewhere.
func (c *Checks) input(param string, raw json.RawMessage) map[string]json.RawMessage {
	if !c.Object(param, raw) {
		return nil
	}
	if len(raw) > MaxInput {
		c.Longer(param, "bytes", MaxInput)
		return nil
	}
	in := make(map[string]json.RawMessage)
	for _, f := range Given(Members(raw)) {
		in[f.Name] = f.Value
	}
	return in
}

func (c *Checks) secretInput(param string, raw json.RawMessage) (names []string) {
	for i, item := range c.Array(param, raw, MaxSecrets) {
		names = append(names, c.Word(param+"/"+strconv.Itoa(i), item, MaxName))
	}
	return names
}

func (c *Checks) responseSchema(param string, raw json.RawMessage) json.RawMessage {
	if !c.Object(param, raw) {
		return nil
	}
	if len(raw) > MaxSchema {
		c.Longer(param, "bytes", MaxSchema)
		return nil
	}
	return raw
}

func (c *Checks) attachments(param string, raw json.RawMessage) (ids []uuid.UUID) {
	for i, item := range c.Array(param, raw, MaxAttachments) {
		at := param + "/" + strconv.Itoa(i)
		if !c.Object(at, item) {
			continue
		}
		given := false
		for _, f := range Given(Members(item)) {
			if f.Name != "file_id" {
				c.Unknown("field", at+Pointer(f.Name), f.Name, []string{"file_id"})
				continue
			}
			given = true
			ids = append(ids, c.UUID(at+"/file_id", f.Value))
		}
		if !given {
			c.Add(fault.Violation{Param: at + "/file_id", Rule: "required", Message: at[1:] + " has no file_id."})
		}
	}
	return ids
}

// callback parses an address, alone or with metadata.
func (c *Checks) callback(param string, raw json.RawMessage) *turn.Callback {
	if len(raw) > 0 && raw[0] == '"' {
		return &turn.Callback{URL: c.Word(param, raw, MaxURL)}
	}
	if len(raw) == 0 || raw[0] != '{' {
		c.Add(fault.Violation{Param: param, Rule: "type", Message: `callback must be an address, or {"url": …, "metadata": …}.`, Expected: "object"})
		return nil
	}
	var cb turn.Callback
	for _, f := range Given(Members(raw)) {
		at := param + Pointer(f.Name)
		switch f.Name {
		case "url":
			cb.URL = c.Word(at, f.Value, MaxURL)
		case "metadata":
			cb.Metadata = c.metadata(at, f.Value)
		default:
			c.Unknown("field", at, f.Name, []string{"url", "metadata"})
		}
	}
	if cb.URL == "" && !c.has(param+"/url") {
		c.Add(fault.Violation{Param: param + "/url", Rule: "required", Message: "callback has no url."})
	}
	return &cb
}

// has reports whether a parameter already has a violation.
func (c *Checks) has(param string) bool {
	for _, v := range c.violations {
		if v.Param == param {
			return true
		}
	}
	return false
}

func (c *Checks) metadata(param string, raw json.RawMessage) map[string]string {
	if !c.Object(param, raw) {
		return nil
	}
	pairs := Given(Members(raw))
	if len(pairs) > callback.MaxMetadata {
		c.Add(fault.Violation{Param: param, Rule: "max_properties", Message: fmt.Sprintf("metadata has more than %d pairs.", callback.MaxMetadata), Expected: callback.MaxMetadata})
		return nil
	}
	meta := make(map[string]string, len(pairs))
	for _, f := range pairs {
		at := param + Pointer(f.Name)
		value, ok := c.Text(at, f.Value)
		switch {
		case !ok:
		case f.Name == "" || len([]rune(f.Name)) > callback.MaxMetadataKey:
			c.Add(fault.Violation{Param: param, Rule: "property_names", Message: fmt.Sprintf("A key of metadata has 1 to %d characters.", callback.MaxMetadataKey), Expected: callback.MaxMetadataKey})
		case len([]rune(value)) > callback.MaxMetadataValue:
			c.Longer(at, "characters", callback.MaxMetadataValue)
		case !strictjson.IsText(f.Value):
			c.Add(fault.Violation{Param: at, Rule: "format", Message: at[1:] + " holds a NUL or half of a surrogate pair."})
		}
		meta[f.Name] = value
	}
	return meta
}

func (c *Checks) limits(param string, raw json.RawMessage) (l turn.Limits) {
	if !c.Object(param, raw) {
		return l
	}
	for _, f := range Given(Members(raw)) {
		at := param + Pointer(f.Name)
		switch f.Name {
		case "max_response_seconds":
			l.MaxResponseSeconds = c.Integer(at, f.Value, 1, MaxResponseSeconds)
		case "max_turns":
			l.MaxTurns = c.Integer(at, f.Value, 1, MaxTurns)
		case "max_cost_usd":
			l.MaxCostUSD = c.cost(at, f.Value)
		default:
			c.Unknown("field", at, f.Name, limitFields)
		}
	}
	return l
}

// cost parses an amount of US dollars.
func (c *Checks) cost(param string, raw json.RawMessage) *float64 {
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil || n == "" {
		c.Type(param, "number")
		return nil
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	switch {
	case f < 0:
		c.Add(fault.Violation{Param: param, Rule: "minimum", Message: param[1:] + " must not be negative.", Expected: 0})
	case err != nil || f > MaxCost:
		c.Add(fault.Violation{Param: param, Rule: "maximum", Message: fmt.Sprintf("%s must be at most %d.", param[1:], MaxCost), Expected: MaxCost})
	}
	return &f
}
