package permission

// Label is what calls of a tool do.
type Label string

const (
	ReadOnly Label = "read_only" // they read
	Changes  Label = "changes"   // they change something, in the session's folder or outside
)

// changing are the tools whose calls change something. A version of an agent cannot label them
// read-only; a rule can allow them.
var changing = map[string]bool{"wiki_write": true, "write": true, "bash": true, "http_request": true}

// Tools returns the names of all tools.
func Tools() []string { return sortedNames(tools) }

// LabelOf returns the built-in label of a tool; ok is false for an unknown tool.
func LabelOf(tool string) (l Label, ok bool) {
	_, ok = tools[tool]
	if changing[tool] {
		return Changes, ok
	}
	return ReadOnly, ok
}

// IsFixed reports whether no rule can be set for a tool.
func IsFixed(tool string) bool { return tools[tool].fixed }

// WithAgent returns the rules for the turns of an agent, whose version has its own labels and rules
// of tools. A denial of the workspace or of the version is final; otherwise the version's rule
// replaces the workspace's. Without a rule, a tool that the version labels as changing asks.
func (r Rules) WithAgent(labels, rules map[string]string) Rules {
	own := r
	own.set = make(map[string]Verdict, len(r.set)+len(rules))
	for tool, label := range labels {
		if l, known := r.labelOf(tool); known && l == ReadOnly && label == string(Changes) {
			own.set[tool] = Ask
		}
	}
	for tool, v := range r.set {
		own.set[tool] = v
	}
	for tool, name := range rules {
		if v, ok := ParseVerdict(name); ok && own.set[tool] != Deny {
			own.set[tool] = v
		}
	}
	return own
}

// labelOf returns the label of a tool, built in or the workspace's own.
func (r Rules) labelOf(tool string) (Label, bool) {
	if l, known := LabelOf(tool); known {
		return l, true
	}
	l, known := r.own[tool]
	return l, known
}
