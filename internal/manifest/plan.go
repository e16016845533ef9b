package manifest

import (
	"context"
	"maps"
	"slices"

	"github.com/parley-server/parley/client"
)

// Plan lists the changes that make a workspace equal to a file.
type Plan struct {
	Changes []Change
	// Unset names the secrets of the file that have no value. An administrator sets them.
	Unset []string
	// Unmanaged counts the objects that the workspace has and the sections of the file lack, and
	// that stay.
	Unmanaged int

	wanted   File
	present  File
	position string // of the log of changes, before present was read
}

// IsRegistered reports whether a secret has hosts once the plan is applied, so that it lacks only its
// value.
func (p *Plan) IsRegistered(secret string) bool { return p.wanted.Secrets[secret] != nil }

// Action is what a change does to an object.
type Action string

const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Change is the change of one object. Before and After are its YAML, "" if it does not exist.
type Change struct {
	Action Action `json:"action"`
	Kind   string `json:"kind"`
	Name   string `json:"name"` // "" for the workspace and the egress policy
	Before string `json:"before"`
	After  string `json:"after"`
}

// NewPlan compares a workspace with a file. Objects that the file lacks, in sections that it has,
// are deleted if prune is true.
func NewPlan(ctx context.Context, a client.Admin, f File, prune bool) (*Plan, error) {
	present, position, err := Read(ctx, a, f.Documents != nil)
	if err != nil {
		return nil, err
	}
	p := &Plan{present: present.managedBy(f), wanted: f.over(present, prune), position: position, Unset: unsetSecrets(f, present)}
	now, err := p.present.objects()
	if err != nil {
		return nil, err
	}
	wanted, err := p.wanted.objects()
	if err != nil {
		return nil, err
	}
	p.compare(now, wanted, prune)
	return p, nil
}

// Rejection is a change that the server would reject.
type Rejection struct {
	At  Change
	Err error
}

// Check returns the changes of the plan that the server would reject. It changes nothing.
func (p *Plan) Check(ctx context.Context, a client.Admin) ([]Rejection, error) {
	if len(p.Changes) == 0 {
		return nil, nil
	}
	var order []Change // documents last: they can be too many for one check
	for _, documents := range []bool{false, true} {
		for _, c := range p.Changes {
			if (c.Kind == kindNames[kindDocument]) == documents {
				order = append(order, c)
			}
		}
	}
	changes := make([]func(client.Admin) error, len(order))
	for i, c := range order {
		changes[i] = func(a client.Admin) error { return p.change(ctx, a, c) }
	}
	rejected, err := a.Check(ctx, changes)
	list := make([]Rejection, len(rejected))
	for i, r := range rejected {
		list[i] = Rejection{order[r.Change], r.Err}
	}
	return list, err
}

// compare fills the changes: first what the file has, in the order of kinds, then deletions in the
// opposite order.
func (p *Plan) compare(now, wanted map[objectKey]string, prune bool) {
	var deletions []Change
	for _, key := range sortedKeys(wanted) {
		before, exists := now[key]
		c := Change{Action: Update, Kind: kindNames[key.kind], Name: key.name, Before: before, After: wanted[key]}
		if !exists {
			c.Action = Create
		}
		if c.Before != c.After {
			p.Changes = append(p.Changes, c)
		}
	}
	for _, key := range sortedKeys(now) {
		switch _, kept := wanted[key]; {
		case kept:
		case prune && p.present.isRemovable(key):
			deletions = append(deletions, Change{Action: Delete, Kind: kindNames[key.kind], Name: key.name, Before: now[key]})
		default:
			p.Unmanaged++
		}
	}
	slices.Reverse(deletions)
	p.Changes = append(p.Changes, deletions...)
}

// unsetSecrets lists the secrets of a file without a value.
func unsetSecrets(f, present File) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		if s := present.Secrets[name]; s == nil || !s.isSet {
			names = append(names, name)
		}
	}
	return names
}

// managedBy returns the sections that another file has.
func (f File) managedBy(other File) File {
	if other.Workspace == nil {
		f.Workspace = nil
	}
	if other.Agents == nil {
		f.Agents = nil
	}
	if other.Skills == nil {
		f.Skills = nil
	}
	if other.ToolRules == nil {
		f.ToolRules = nil
	}
	if other.Allowlist == nil {
		f.Allowlist = nil
	}
	if other.Egress == nil {
		f.Egress = nil
	}
	if other.Secrets == nil {
		f.Secrets = nil
	}
	if other.ToolServers == nil {
		f.ToolServers = nil
	}
	if other.Providers == nil {
		f.Providers = nil
	}
	if other.Budgets == nil {
		f.Budgets = nil
	}
	if other.Documents == nil {
		f.Documents = nil
	}
	return f
}

// over returns the file with the present values of what it leaves out of an object: settings of the
// workspace, hosts unless they are pruned, and secrets that it only names.
func (f File) over(present File, prune bool) File {
	if f.Workspace != nil {
		w := *present.Workspace
		overlay(&w.Name, f.Workspace.Name)
		overlay(&w.MaxRunning, f.Workspace.MaxRunning)
		overlay(&w.StorageQuota, f.Workspace.StorageQuota)
		overlay(&w.MessagesPerMinute, f.Workspace.MessagesPerMinute)
		overlay(&w.CallsPerMinute, f.Workspace.CallsPerMinute)
		overlay(&w.OpenStreams, f.Workspace.OpenStreams)
		overlay(&w.SeparateApprover, f.Workspace.SeparateApprover)
		overlay(&w.AdminPatterns, f.Workspace.AdminPatterns)
		overlay(&w.CallerInstructions, f.Workspace.CallerInstructions)
		overlay(&w.CallerParameters, f.Workspace.CallerParameters)
		overlay(&w.FallbackModels, f.Workspace.FallbackModels)
		overlay(&w.ReasoningSummaries, f.Workspace.ReasoningSummaries)
		overlay(&w.SearchLanguage, f.Workspace.SearchLanguage)
		f.Workspace = &w
	}
	if f.Egress != nil && !prune {
		hosts := append(slices.Clone(present.Egress.Hosts), f.Egress.Hosts...)
		slices.Sort(hosts)
		f.Egress = &Egress{f.Egress.Public, slices.Compact(hosts)}
	}
	f.ToolServers = maps.Clone(f.ToolServers)
	for name, s := range f.ToolServers {
		f.ToolServers[name] = s.connected(present.ToolServers[name])
	}
	f.Secrets = maps.Clone(f.Secrets)
	for name, s := range f.Secrets {
		if s == nil {
			f.Secrets[name] = present.Secrets[name]
		}
	}
	return f
}

func overlay[T any](value **T, given *T) {
	if given != nil {
		*value = given
	}
}
