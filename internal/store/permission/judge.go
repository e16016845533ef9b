package permission

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// Rules decide about the tool calls of one workspace, as of one moment. The zero value has the
// built-in defaults.
type Rules struct {
	set   map[string]Verdict
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
	t, known := tools[tool]
	rule, set := r.set[tool]
	set = set && known && !t.fixed
	if set && rule == Deny {
		return Deny, fmt.Sprintf("This workspace does not allow the tool %s.", tool)
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
