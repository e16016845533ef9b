package permission

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
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

// Judgment is the decision about a call.
type Judgment struct {
	Verdict Verdict
	Reason  string       // a sentence for users and for the model
	Source  event.Source // what decided
	Pattern string       // of the allow-list, if it decided
}

// Judge returns the decision about a call, in this order: a tool that the workspace denies is
// denied; a call that the allow-list covers is allowed; then the workspace's rule for the tool
// applies, or the built-in one. scopes are those of the key that sent the message, including
// implied ones: the names that apikey.Scopes.Expand returns.
func (r Rules) Judge(tool string, input json.RawMessage, scopes []string) Judgment {
	if reason, source := r.denial(tool); reason != "" {
		return Judgment{Verdict: Deny, Source: source, Reason: reason}
	}
	t, known := r.kindOf(tool)
	rule, set := r.set[tool]
	set = set && !t.fixed && known
	_, own := r.own[tool]
	for _, e := range r.allow[tool] {
		if p, err := Parse(e.pattern); err == nil && p.Matches(tool, input) {
			r.hits.addHit(e.id)
			return Judgment{Verdict: Allow, Source: event.SourcePattern, Pattern: p.String(), Reason: fmt.Sprintf("The allow-list has %s.", p)}
		}
	}
	switch {
	case !known:
		return Judgment{Verdict: Ask, Source: event.SourceBuiltIn, Reason: fmt.Sprintf("No rule covers the tool %s.", tool)}
	case set:
		return Judgment{Verdict: rule, Source: event.SourceRule, Reason: fmt.Sprintf("The workspace's rule for %s is %s.", tool, rule)}
	}
	j := Judgment{Source: event.SourceBuiltIn}
	if own {
		j.Source = event.SourceLabel
	}
	j.Verdict, j.Reason = t.byDefault(input, scopes)
	return j
}

// Denied returns the reason why no call of a tool can run, or "" if some can. The model is not
// offered a denied tool.
func (r Rules) Denied(tool string) string {
	reason, _ := r.denial(tool)
	return reason
}

// denial returns why no call of a tool can run, and what decided so, or "".
func (r Rules) denial(tool string) (reason string, source event.Source) {
	t, known := r.kindOf(tool)
	label, own := r.own[tool]
	switch {
	case r.set[tool] == Deny && !t.fixed: // also a tool of a caller
		return fmt.Sprintf("This workspace does not allow the tool %s.", tool), event.SourceRule
	case own && label == "":
		return fmt.Sprintf("The tool %s is disabled, or its definition has changed and waits for an administrator.", tool), event.SourceLabel
	case !known && strings.Contains(tool, "__"):
		return fmt.Sprintf("The tool %s was removed.", tool), event.SourceLabel
	}
	return "", ""
}

// kindOf returns how the engine judges a tool, built in or the workspace's own.
func (r Rules) kindOf(tool string) (kind, bool) {
	if t, known := tools[tool]; known {
		return t, true
	}
	label, own := r.own[tool]
	return ownKinds[label], own
}
