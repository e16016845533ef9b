package manifest

import (
	"cmp"
	"maps"
	"slices"
)

// objectKey identifies a part of the configuration that is changed as a whole.
type objectKey struct {
	kind int
	name string
}

// The kinds of objects, in the order in which they are written: an agent last, when everything that
// it uses is there.
const (
	kindSecret = iota
	kindProvider
	kindWorkspace // after the providers of its models
	kindToolServer
	kindEgress
	kindRule
	kindPattern
	kindBudget
	kindDocument
	kindSkill
	kindAgent
)

// kindNames name the kinds for users.
var kindNames = []string{"secret", "model provider", "workspace", "tool server", "egress", "tool rule", "pattern", "budget", "document",
	"skill", "agent"}

// objects returns the YAML of each object.
func (f File) objects() (map[objectKey]string, error) {
	all := make(map[objectKey]string)
	var failed error
	add := func(kind int, name string, value any) {
		text, err := encodeYAML(value)
		all[objectKey{kind, name}], failed = text, cmp.Or(failed, err)
	}
	if f.Workspace != nil {
		add(kindWorkspace, "", f.Workspace)
	}
	for name, s := range f.Secrets {
		if s != nil {
			add(kindSecret, name, s)
		}
	}
	for name, s := range f.ToolServers {
		add(kindToolServer, name, s)
	}
	for name, p := range f.Providers {
		add(kindProvider, name, p)
	}
	if f.Egress != nil {
		add(kindEgress, "", f.Egress)
	}
	for tool, rule := range f.ToolRules {
		add(kindRule, tool, rule)
	}
	for _, pattern := range f.Allowlist {
		add(kindPattern, pattern, pattern)
	}
	for _, b := range f.Budgets {
		add(kindBudget, b.name(), b)
	}
	for path, t := range f.Documents {
		all[objectKey{kindDocument, path}] = t.Value
	}
	for name, t := range f.Skills {
		all[objectKey{kindSkill, name}] = t.Value
	}
	for name, a := range f.Agents {
		add(kindAgent, name, a)
	}
	return all, failed
}

// isRemovable reports whether an object of a workspace can be deleted: not its only one of a kind,
// and not its default agent.
func (f File) isRemovable(key objectKey) bool {
	return key.kind != kindWorkspace && key.kind != kindEgress && (key.kind != kindAgent || key.name != f.standard)
}

func sortedKeys(objects map[objectKey]string) []objectKey {
	return slices.SortedFunc(maps.Keys(objects), func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}
