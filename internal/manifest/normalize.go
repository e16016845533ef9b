package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/vault"
)

// normalize rewrites the file as the server stores it, so that equal configurations are equal texts.
func (f *File) normalize() error {
	for name, a := range f.Agents {
		f.Agents[name] = a.complete()
	}
	for name, s := range f.ToolServers {
		f.ToolServers[name] = s.normalize(name)
	}
	for name, p := range f.Providers {
		f.Providers[name] = p.complete(name)
	}
	if err := f.normalizeAllowlist(); err != nil {
		return err
	}
	var err error
	if f.Egress != nil {
		if f.Egress.Hosts, err = sortedHosts("egress", f.Egress.Hosts); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		s := f.Secrets[name]
		if s == nil {
			continue
		}
		if len(s.Hosts) == 0 {
			return faultf(
				"The secret %s has no hosts. List those that may receive its value, or leave the entry empty to name the secret only.", name)
		}
		if s.Hosts, err = sortedHosts("secret "+name, s.Hosts); err != nil {
			return err
		}
	}
	return f.normalizeBudgets()
}

// complete returns the agent with the values of a new agent in place of absent ones.
func (a Agent) complete() Agent {
	usual := agent.Defaults().Limits
	limits := AgentLimits{}
	if a.Limits != nil {
		limits = *a.Limits
	}
	for _, l := range []struct {
		value **int
		usual int
	}{{&limits.MaxResponseSeconds, usual.MaxResponseSeconds}, {&limits.MaxTurns, usual.MaxTurns}} {
		if *l.value == nil {
			*l.value = &l.usual
		}
	}
	a.Limits = &limits
	if len(a.Rules) == 0 {
		a.Rules = nil
	}
	return a
}

func (f *File) normalizeAllowlist() error {
	for i, text := range f.Allowlist {
		p, err := permission.Parse(text)
		if wrong := fault.From(err); wrong != nil {
			return faultf("allowlist has %q: %s", text, wrong.Message)
		}
		if err != nil {
			return err
		}
		f.Allowlist[i] = p.String()
	}
	slices.Sort(f.Allowlist)
	f.Allowlist = slices.Compact(f.Allowlist)
	return nil
}

func sortedHosts(what string, hosts []string) ([]string, error) {
	list := []string{}
	for _, text := range hosts {
		host, wrong := vault.Host(text)
		if wrong != "" {
			return nil, faultf("%s has %q, which is not a host: %s", what, text, wrong)
		}
		list = append(list, host)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func (f *File) normalizeBudgets() error {
	slices.SortFunc(f.Budgets, func(a, b Budget) int { return strings.Compare(a.name(), b.name()) })
	for i, b := range f.Budgets {
		if i > 0 && f.Budgets[i-1].name() == b.name() {
			return faultf("The budget %s is in the file twice.", b.name())
		}
	}
	return nil
}

// name identifies the budget of its workspace.
func (b Budget) name() string { return strings.TrimSuffix(b.Kind+"/"+b.Subject, "/") }
