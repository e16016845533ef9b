package admin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

// TestCredentialsAreAdministered registers, replaces and deletes a credential. Its value is in no
// response and not in the log of changes.
func TestCredentialsAreAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	const value = "hunter2-hunter2-hunter2"
	var v struct {
		Version  int
		HasValue bool `json:"has_value"`
	}
	made := s.must(t, "PUT credentials/STRIPE_KEY", `{"allowed_hosts":["api.stripe.com"],"value":"`+value+`"}`, &v)
	if !v.HasValue || strings.Contains(made.text, value) {
		t.Errorf("registered %s", made.text)
	}
	s.must(t, "PUT credentials/STRIPE_KEY", `{"allowed_hosts":["api.stripe.com","files.stripe.com"]}`, &v)
	if v.Version != 2 || !v.HasValue {
		t.Errorf("replaced by %+v", v)
	}
	opened, err := s.Vault.Open(t.Context(), s.Workspace.ID, []string{"STRIPE_KEY"})
	if err != nil || string(opened[0].Value.Reveal()) != value {
		t.Errorf("the value: %v", err)
	}
	list, log := s.must(t, "GET credentials", "", nil), s.must(t, "GET admin-log?object=credentials", "", nil)
	if !strings.Contains(list.text, "files.stripe.com") || strings.Contains(list.text+log.text, value) ||
		!strings.Contains(log.text, "[changed]") {
		t.Errorf("%s\n%s", list.text, log.text)
	}
	s.refused(t, "INVALID_REQUEST", "PUT credentials/STRIPE_KEY", `{"value":"x","allowed_hosts":["api.stripe.com"]}`)
	s.refused(t, "INVALID_REQUEST", "PUT credentials/lower", `{"allowed_hosts":["api.stripe.com"]}`)
	s.must(t, "DELETE credentials/STRIPE_KEY", "", nil)
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE credentials/STRIPE_KEY", "")
}

// TestRulesAreAdministered sets the rule of a tool, the allow-list and the egress policy.
func TestRulesAreAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	var tool struct{ Rule *string }
	if s.must(t, "PUT tools/bash/rule", `{"rule":"deny"}`, &tool); tool.Rule == nil || *tool.Rule != "deny" {
		t.Errorf("set to %+v", tool)
	}
	s.must(t, "DELETE tools/bash/rule", "", nil)
	if text := s.must(t, "GET tools?limit=100", "", nil).text; strings.Contains(text, `"rule":"deny"`) ||
		!strings.Contains(text, `"name":"bash"`) {
		t.Errorf("reset: %s", text)
	}
	s.refused(t, "OBJECT_NOT_FOUND", "PUT tools/bsh/rule", `{"rule":"deny"}`)
	s.refused(t, "OBJECT_NOT_FOUND", "PUT tools/send_mail/rule", `{"rule":"allow"}`)
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE tools/send_mail/rule", "")
	if s.must(t, "PUT tools/send_mail/rule", `{"rule":"deny"}`, &tool); tool.Rule == nil || *tool.Rule != "deny" {
		t.Errorf("a tool of callers: %+v", tool)
	}
	if s.must(t, "DELETE tools/send_mail/rule", "", &tool); tool.Rule != nil {
		t.Errorf("a tool of callers: %+v", tool)
	}
	s.refused(t, "INVALID_REQUEST", "PUT tools/bash/rule", `{"rule":"maybe"}`)
	s.refused(t, "INVALID_REQUEST", "PUT tools/request_secret/rule", `{"rule":"allow"}`)

	var entry struct {
		ID      string `json:"allowlist_id"`
		AddedBy string `json:"added_by"`
	}
	if s.must(t, "POST allowlist", `{"pattern":"bash(git  diff *)"}`, &entry); entry.AddedBy != s.Key[4:12] {
		t.Errorf("added %+v", entry)
	}
	s.refused(t, "INVALID_ALLOWLIST_PATTERN", "POST allowlist", `{"pattern":"bash"}`)
	s.must(t, "DELETE allowlist/"+entry.ID, "", nil)
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE allowlist/"+entry.ID, "")

	first := s.must(t, "GET egress", "", nil)
	if tag := first.header.Get("ETag"); tag != `"0"` {
		t.Errorf("ETag %s", tag)
	}
	second := s.must(t, "PUT egress", `{"hosts":["b.example.com","a.example.com"]}`, nil, "If-Match", `"0"`)
	if !strings.Contains(second.text, `["a.example.com","b.example.com"]`) {
		t.Errorf("stored %s", second.text)
	}
	s.refused(t, "PRECONDITION_FAILED", "PUT egress", `{"hosts":[]}`, "If-Match", `"0"`)
	s.must(t, "PUT egress", `{"hosts":[],"public":true}`, nil, "If-Match", second.header.Get("ETag"))
	s.refused(t, "INVALID_REQUEST", "PUT egress", `{"hosts":["not a host"]}`)
	s.must(t, "GET egress/requests", "", nil)
}

const triage = "---\nname: triage\ndescription: Sort a ticket.\n---\nSort the ticket.\n"

// TestContentIsAdministered stores, publishes and archives a skill, and writes documents. A version
// that is not the newest is not overwritten.
func TestContentIsAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	body := func(document string) string {
		text, _ := json.Marshal(map[string]any{"document": document, "draft": true})
		return string(text)
	}
	var v struct {
		Version int
		Active  bool
		Status  string
	}
	first := s.must(t, "PUT skills/triage", body(triage), &v)
	if v.Version != 1 || v.Active || v.Status != "draft" {
		t.Errorf("stored %+v", v)
	}
	s.must(t, "PUT skills/triage", body(triage+"Be quick.\n"), &v, "If-Match", first.header.Get("ETag"))
	s.refused(t, "PRECONDITION_FAILED", "PUT skills/triage", body(triage+"Be slow.\n"), "If-Match", first.header.Get("ETag"))
	s.refused(t, "INVALID_REQUEST", "PUT skills/another", body(triage))
	if s.must(t, "POST skills/triage/publish", `{"version":1}`, &v); v.Version != 1 || !v.Active {
		t.Errorf("published %+v", v)
	}
	if text := s.must(t, "GET skills/triage?version=2", "", nil).text; !strings.Contains(text, "Be quick.") {
		t.Errorf("version 2: %s", text)
	}
	s.must(t, "POST skills/triage/archive", "", nil)
	if text := s.must(t, "GET skills/triage/changes", "", nil).text; strings.Count(text, `"key:`+s.Key[4:12]) != 4 {
		t.Errorf("changes: %s", text)
	}
	s.must(t, "GET skills", "", nil)
	s.refused(t, "OBJECT_NOT_FOUND", "GET skills/none", "")

	const page = "documents/content?path=wiki/onboarding.md"
	made := s.must(t, "PUT "+page, `{"content":"# Onboarding"}`, nil, "If-Match", `"0"`)
	s.refused(t, "PRECONDITION_FAILED", "PUT "+page, `{"content":"x"}`, "If-Match", `"0"`)
	s.must(t, "PUT "+page, `{"content":"# Welcome"}`, nil, "If-Match", made.header.Get("ETag"))
	if text := s.must(t, "GET documents?prefix=wiki/", "", nil).text; !strings.Contains(text, `"title":"Welcome"`) ||
		strings.Contains(text, `"content"`) {
		t.Errorf("list: %s", text)
	}
	s.must(t, "DELETE "+page, "", nil)
	s.refused(t, "FILE_NOT_FOUND", "GET "+page, "")
	s.refused(t, "INVALID_REQUEST", "GET documents/content", "")
}

// TestServerIsAdministered creates and deletes a workspace. Its log outlives it. Administrators of
// a workspace cannot do that.
func TestServerIsAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	var w struct {
		ID    string `json:"workspace_id"`
		Admin key    `json:"admin_key"`
	}
	s.must(t, "POST /api/v1/admin/workspaces", `{"slug":"sales","instructions":"Sell.","max_turns":3}`, &w)
	theirs := []string{"Authorization", "Bearer " + w.Admin.Key}
	s.must(t, "GET /api/v1/workspaces/sales/keys", "", nil, theirs...)
	s.refused(t, "WORKSPACE_NOT_FOUND", "GET /api/v1/workspaces/demo/keys", "", theirs...)
	s.refused(t, "INSUFFICIENT_SCOPE", "DELETE /api/v1/admin/workspaces/"+w.ID, "", theirs...)
	s.refused(t, "INSUFFICIENT_SCOPE", "GET /api/v1/admin/system", "", theirs...)
	s.refused(t, "INSUFFICIENT_SCOPE", "GET /api/v1/admin/log", "", "Authorization", "Bearer "+s.Issue(t, s.Workspace, apikey.Admin))
	s.refused(t, "INVALID_REQUEST", "POST /api/v1/admin/workspaces", `{"slug":"sales"}`)
	s.must(t, "DELETE /api/v1/admin/workspaces/"+w.ID, "", nil)
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE /api/v1/admin/workspaces/"+w.ID, "")
	if text := s.must(t, "GET /api/v1/admin/log?object=workspaces&workspace_id="+w.ID, "", nil).text; strings.Count(text, `"action"`) < 2 ||
		!strings.Contains(text, `"delete"`) {
		t.Errorf("the log: %s", text)
	}
	s.must(t, "GET /api/v1/admin/workspaces", "", nil)
	s.must(t, "GET /api/v1/admin/retention", "", nil)
	s.must(t, "POST /api/v1/admin/pause", "", nil)
	if text := s.must(t, "GET /api/v1/admin/system", "", nil).text; !strings.Contains(text, `"paused_by":"key:`+s.Key[4:12]) {
		t.Errorf("the state: %s", text)
	}
	s.must(t, "GET limits", "", nil)
	s.must(t, "GET models?limit=2", "", nil)
}

// TestErasureIsRecorded erases a session by its caller, and reads the record.
func TestErasureIsRecorded(t *testing.T) {
	t.Parallel()
	s := start(t)
	var id string
	if err := s.Pool.QueryRow(t.Context(),
		`INSERT INTO sessions (id, workspace_id, caller_id) VALUES (gen_random_uuid(), $1, 'anna') RETURNING id::text`,
		s.Workspace.ID).Scan(&id); err != nil {
		t.Fatal(err)
	}
	var e struct {
		SessionID string `json:"session_id"`
		Before    bool   `json:"erased_before"`
	}
	if s.must(t, "POST erasures", `{"caller_id":"anna"}`, &e); e.SessionID != id || e.Before {
		t.Errorf("erased %+v", e)
	}
	if s.must(t, "POST erasures", `{"session_id":"`+id+`"}`, &e); !e.Before {
		t.Errorf("erased again %+v", e)
	}
	s.refused(t, "SESSION_NOT_FOUND", "POST erasures", `{"caller_id":"anna"}`)
	s.refused(t, "INVALID_REQUEST", "POST erasures", `{}`)
	if text := s.must(t, "GET erasures", "", nil).text; !strings.Contains(text, `"by":"key:`+s.Key[4:12]) || !strings.Contains(text, id) {
		t.Errorf("the record: %s", text)
	}
	s.refused(t, "INVALID_CURSOR", "GET erasures?cursor=x", "")
	var secret struct{ Secret string }
	if s.must(t, "POST callback-secret/roll", `{}`, &secret); !strings.HasPrefix(secret.Secret, "whsec_") {
		t.Errorf("rolled to %+v", secret)
	}
	s.must(t, "GET callback-secret", "", nil)
}
