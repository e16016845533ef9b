package permission_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
)

// TestLabelsOfOwnToolsAreTheirDefaults judges calls of a workspace's own tools.
func TestLabelsOfOwnToolsAreTheirDefaults(t *testing.T) {
	t.Parallel()
	w := open(t)
	if _, err := w.pool.Exec(t.Context(),
		`WITH s AS (INSERT INTO tool_servers (workspace_id, name, kind, url, timeout_seconds) VALUES ($1, 'crm', 'mcp', 'https://crm.example/', 60) RETURNING id)
		INSERT INTO tool_definitions (workspace_id, server_id, own_name, name, definition, hash, offered, offered_hash, label, enabled)
		SELECT $1, s.id, x.own, 'crm__' || x.own, '{}', 'h', x.offered::json, x.offered::bytea, x.label, x.enabled
		FROM s, (VALUES ('find', NULL, 'read_only', true), ('rename', NULL, 'changes', true), ('off', NULL, 'read_only', false), ('changed', '{}', 'read_only', true)) AS x (own, offered, label, enabled)`, w.id); err != nil {
		t.Fatal(err)
	}
	input := json.RawMessage(`{}`)
	expect := func(when string, want map[string]permission.Verdict) {
		t.Helper()
		for tool, v := range want {
			if got := w.judge(t, tool, input); got != v {
				t.Errorf("%s: %s is %s", when, tool, got)
			}
		}
	}
	expect("by default", map[string]permission.Verdict{"crm__find": permission.Allow, "crm__rename": permission.Ask,
		"crm__off": permission.Deny, "crm__changed": permission.Deny, "crm__none": permission.Deny})
	for tool, v := range map[string]permission.Verdict{"crm__find": permission.Deny, "crm__rename": permission.Allow,
		"crm__off": permission.Allow} {
		if err := w.Set(t.Context(), w.id, tool, v); err != nil {
			t.Fatal(err)
		}
	}
	expect("with rules", map[string]permission.Verdict{"crm__find": permission.Deny, "crm__rename": permission.Allow,
		"crm__off": permission.Deny})
	rules, err := w.Rules(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	if rules.Denied("crm__find") == "" || rules.Denied("crm__changed") == "" || rules.Denied("crm__rename") != "" ||
		rules.Denied("bash") != "" {
		t.Error("the wrong tools are denied")
	}
	if err := w.Reset(t.Context(), w.id, "crm__find"); err != nil {
		t.Fatal(err)
	}
	if rules, err = w.Rules(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	own := rules.WithAgent(map[string]string{"crm__find": "changes"}, map[string]string{"crm__rename": "deny"})
	if v := own.Judge("crm__find", input, nil).Verdict; v != permission.Ask {
		t.Errorf("a tool that the version labels as changing: %s", v)
	}
	if v := own.Judge("crm__rename", input, nil).Verdict; v != permission.Deny {
		t.Errorf("a tool that the version denies: %s", v)
	}
	if err := w.Set(t.Context(), w.id, "crm__none", permission.Allow); fault.From(err) == nil {
		t.Errorf("a rule of an unknown tool: %v", err)
	}
	settings, err := w.Settings(t.Context(), w.id)
	if err != nil || len(settings) != len(permission.Tools())+4 || settings[len(settings)-1].Tool != "crm__rename" ||
		settings[len(settings)-1].Default != "ask" {
		t.Errorf("%+v, %v", settings, err)
	}
}

// TestToolsOfCallersCanBeDenied denies a tool by a name that neither the agent nor the workspace has.
func TestToolsOfCallersCanBeDenied(t *testing.T) {
	t.Parallel()
	w := open(t)
	for tool, rule := range map[string]permission.Verdict{"read_mail": permission.Allow, "bsh": permission.Deny,
		"crm__find": permission.Deny, "a b": permission.Deny} {
		if err := w.Set(t.Context(), w.id, tool, rule); fault.From(err) == nil {
			t.Errorf("%s %s: %v", rule, tool, err)
		}
	}
	if err := w.Set(t.Context(), w.id, "read_mail", permission.Deny); err != nil {
		t.Fatal(err)
	}
	rules, err := w.Rules(t.Context(), w.id)
	if err != nil || rules.Denied("read_mail") == "" || rules.Denied("get_mail") != "" {
		t.Errorf("%q, %q, %v", rules.Denied("read_mail"), rules.Denied("get_mail"), err)
	}
	settings, err := w.Settings(t.Context(), w.id)
	if last := settings[len(settings)-1]; err != nil || last.Tool != "read_mail" || *last.Rule != permission.Deny || last.Default != "allow" {
		t.Errorf("%+v, %v", last, err)
	}
	if err := w.Reset(t.Context(), w.id, "read_mail"); err != nil {
		t.Fatal(err)
	}
	if w.judge(t, "read_mail", nil) == permission.Deny {
		t.Error("the rule outlives its removal")
	}
}
