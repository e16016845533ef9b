package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
)

const (
	maxInput       = 256 << 10 // bytes
	maxSchema      = 64 << 10  // bytes
	maxSecrets     = 20
	maxName        = 128 // characters of a skill's or a secret's name
	maxAttachments = 20
	maxURL         = 2048 // bytes
)

// longer notes that a value is larger than it may be.
func (c *checks) longer(param, what string, limit int) {
	c.add(fault.Violation{Param: param, Rule: "max_length", Message: fmt.Sprintf("%s has more than %d %s.", param[1:], limit, what), Expected: limit})
}

// word reads a text of 1 to limit characters.
func (c *checks) word(param string, raw json.RawMessage, limit int) string {
	s, ok := c.text(param, raw)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		c.add(fault.Violation{Param: param, Rule: "min_length", Message: param[1:] + " is empty.", Expected: 1})
	case len([]rune(s)) > limit:
		c.longer(param, "characters", limit)
	case unsound(raw):
		c.add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " holds a NUL or half of a surrogate pair."})
	}
	return s
}

// object reports whether a value is an object, and notes where it is not.
func (c *checks) object(param string, raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] == '{' {
		return true
	}
	c.typ(param, "object")
	return false
}

// array reads the elements of an array of at most limit.
func (c *checks) array(param string, raw json.RawMessage, limit int) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		c.typ(param, "array")
		return nil
	}
	if len(list) > limit {
		c.add(fault.Violation{Param: param, Rule: "max_items", Message: fmt.Sprintf("%s has more than %d items.", param[1:], limit), Expected: limit})
		return nil
	}
	return list
}

// oneOf reads one of a few words.
func (c *checks) oneOf(param string, raw json.RawMessage, allowed ...string) string {
	s, ok := c.text(param, raw)
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
	c.add(v)
	return ""
}

// uuid reads an id.
func (c *checks) uuid(param string, raw json.RawMessage) uuid.UUID {
	s, ok := c.text(param, raw)
	if !ok {
		return uuid.Nil
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || id == uuid.Nil {
		c.add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " is not a UUID.", Expected: "uuid"})
	}
	return id
}

func (c *checks) skill(param string, raw json.RawMessage) string { return c.word(param, raw, maxName) }

// input takes a skill's inputs apart. What they hold is nobody's business here.
func (c *checks) input(param string, raw json.RawMessage) map[string]json.RawMessage {
	if !c.object(param, raw) {
		return nil
	}
	if len(raw) > maxInput {
		c.longer(param, "bytes", maxInput)
		return nil
	}
	in := make(map[string]json.RawMessage)
	for _, f := range members(raw) {
		in[f.name] = f.value
	}
	return in
}

func (c *checks) secretInput(param string, raw json.RawMessage) (names []string) {
	for i, item := range c.array(param, raw, maxSecrets) {
		names = append(names, c.word(param+"/"+strconv.Itoa(i), item, maxName))
	}
	return names
}

func (c *checks) responseSchema(param string, raw json.RawMessage) json.RawMessage {
	if !c.object(param, raw) {
		return nil
	}
	if len(raw) > maxSchema {
		c.longer(param, "bytes", maxSchema)
		return nil
	}
	return raw
}

func (c *checks) attachments(param string, raw json.RawMessage) (ids []uuid.UUID) {
	for i, item := range c.array(param, raw, maxAttachments) {
		at := param + "/" + strconv.Itoa(i)
		if !c.object(at, item) {
			continue
		}
		given := false
		for _, f := range members(item) {
			if f.name != "file_id" {
				c.unknown("field", at+pointer(f.name), f.name, []string{"file_id"})
				continue
			}
			given = true
			ids = append(ids, c.uuid(at+"/file_id", f.value))
		}
		if !given {
			c.add(fault.Violation{Param: at + "/file_id", Rule: "required", Message: at[1:] + " has no file_id."})
		}
	}
	return ids
}

// callback reads an address, alone or with metadata.
func (c *checks) callback(param string, raw json.RawMessage) *turn.Callback {
	if len(raw) > 0 && raw[0] == '"' {
		return &turn.Callback{URL: c.word(param, raw, maxURL)}
	}
	if len(raw) == 0 || raw[0] != '{' {
		c.add(fault.Violation{Param: param, Rule: "type", Message: `callback must be an address, or {"url": …, "metadata": …}.`, Expected: "object"})
		return nil
	}
	var cb turn.Callback
	for _, f := range members(raw) {
		at := param + pointer(f.name)
		switch f.name {
		case "url":
			cb.URL = c.word(at, f.value, maxURL)
		case "metadata":
			cb.Metadata = c.metadata(at, f.value)
		default:
			c.unknown("field", at, f.name, []string{"url", "metadata"})
		}
	}
	if cb.URL == "" && !c.has(param+"/url") {
		c.add(fault.Violation{Param: param + "/url", Rule: "required", Message: "callback has no url."})
	}
	return &cb
}

// has reports whether something is wrong with a parameter already.
func (c *checks) has(param string) bool {
	for _, v := range c.violations {
		if v.Param == param {
			return true
		}
	}
	return false
}

func (c *checks) metadata(param string, raw json.RawMessage) map[string]string {
	if !c.object(param, raw) {
		return nil
	}
	pairs := members(raw)
	if len(pairs) > callback.MaxMetadata {
		c.add(fault.Violation{Param: param, Rule: "max_properties", Message: fmt.Sprintf("metadata has more than %d pairs.", callback.MaxMetadata), Expected: callback.MaxMetadata})
		return nil
	}
	meta := make(map[string]string, len(pairs))
	for _, f := range pairs {
		at := param + pointer(f.name)
		value, ok := c.text(at, f.value)
		switch {
		case !ok:
		case f.name == "" || len([]rune(f.name)) > callback.MaxMetadataKey:
			c.add(fault.Violation{Param: param, Rule: "property_names", Message: fmt.Sprintf("A key of metadata has 1 to %d characters.", callback.MaxMetadataKey), Expected: callback.MaxMetadataKey})
		case len([]rune(value)) > callback.MaxMetadataValue:
			c.longer(at, "characters", callback.MaxMetadataValue)
		case unsound(f.value):
			c.add(fault.Violation{Param: at, Rule: "format", Message: at[1:] + " holds a NUL or half of a surrogate pair."})
		}
		meta[f.name] = value
	}
	return meta
}

func (c *checks) limits(param string, raw json.RawMessage) (l turn.Limits) {
	if !c.object(param, raw) {
		return l
	}
	for _, f := range members(raw) {
		at := param + pointer(f.name)
		switch f.name {
		case "max_response_seconds":
			l.MaxResponseSeconds = c.integer(at, f.value, 1, maxResponseSeconds)
		case "max_turns":
			l.MaxTurns = c.integer(at, f.value, 1, maxTurns)
		case "max_cost_usd":
			l.MaxCostUSD = c.cost(at, f.value)
		default:
			c.unknown("field", at, f.name, limitFields)
		}
	}
	return l
}

// cost reads an amount of US dollars.
func (c *checks) cost(param string, raw json.RawMessage) *float64 {
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil || n == "" {
		c.typ(param, "number")
		return nil
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	switch {
	case f < 0:
		c.add(fault.Violation{Param: param, Rule: "minimum", Message: param[1:] + " must not be negative.", Expected: 0})
	case err != nil || f > maxCost:
		c.add(fault.Violation{Param: param, Rule: "maximum", Message: fmt.Sprintf("%s must be at most %d.", param[1:], maxCost), Expected: maxCost})
	}
	return &f
}
