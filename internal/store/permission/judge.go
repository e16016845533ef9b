package permission

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Rules decide about the tool calls of one workspace, as of one moment. The zero value has the
// built-in defaults.
type Rules struct {
	set   map[string]Verdict
	own   map[string]Label     // the workspace's own tools; "" for those that must not run
	allow map[string][]allowed // by tool, oldest first
	hits  *hits
}

// allowed is an entry of the allow-list. Its pattern is parsed when a call of its tool is judged; a
// pattern that this release no longer accepts allows nothing.
type allowed struct {
	id      uuid.UUID
	pattern string
}

// Decide returns the decision about a call, in this order: a tool that the workspace denies is
// denied; a call that the allow-list covers is allowed; then the workspace's rule for the tool
// applies, or the built-in one. scopes are those of the key that sent the message, including
// implied ones: the names that apikey.Scopes.Expand returns. The reason is a sentence for users and
// for the model.
func (r Rules) Decide(tool string, input json.RawMessage, scopes []string) (Verdict, string) {
	t, known := r.kindOf(tool)
	rule, set := r.set[tool]
	if set = set && !t.fixed; set && rule == Deny { // also a tool of a caller
		return Deny, fmt.Sprintf("This workspace does not allow the tool %s.", tool)
	}
	set = set && known
	if label, own := r.own[tool]; own && label == "" {
		return Deny, fmt.Sprintf("The tool %s is disabled, or its definition has changed and waits for an administrator.", tool)
	}
	if !known && strings.Contains(tool, "__") {
		return Deny, fmt.Sprintf("The tool %s was removed.", tool)
	}
	for _, e := range r.allow[tool] {
		if p, err := Parse(e.pattern); err == nil && p.Matches(tool, input) {
			r.hits.addHit(e.id)
			return Allow, fmt.Sprintf("The allow-list has %s.", p)
		}
	}
	switch {
	case !known:
		return Ask, fmt.Sprintf("No rule covers the tool %s.", tool)
	case set:
		return rule, fmt.Sprintf("The workspace's rule for %s is %s.", tool, rule)
	}
	return t.byDefault(input, scopes)
}

// Denied returns the reason why no call of a tool can run, or "" if some can. The model is not
// offered a denied tool.
func (r Rules) Denied(tool string) string {
	if v, reason := r.Decide(tool, json.RawMessage("{}"), nil); v == Deny {
		return reason
	}
	return ""
}

// kindOf returns how the engine judges a tool, built in or the workspace's own.
func (r Rules) kindOf(tool string) (kind, bool) {
	if t, known := tools[tool]; known {
		return t, true
	}
	label, own := r.own[tool]
	return ownKinds[label], own
}
