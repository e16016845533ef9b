package admin_test

import (
	"strings"
	"testing"
)

// TestModelProvidersAreAdministered adds, replaces and removes a provider. Its key must exist and be
// allowed at its host; every change is in the log of changes; and a change that others overtook is
// rejected.
func TestModelProvidersAreAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	const put = "PUT model-providers/vllm"
	s.refused(t, "INVALID_REQUEST", put, `{}`)
	s.refused(t, "INVALID_REQUEST", put, `{"base_url":"https://u:p@vllm.example.com/v1"}`)
	s.refused(t, "INVALID_REQUEST", put, `{"base_url":"http://10.0.0.7/v1"}`)
	s.refused(t, "INVALID_REQUEST", put, `{"base_url":"https://vllm.example.com/v1","timeout_seconds":601}`)
	s.refused(t, "INVALID_REQUEST", "PUT model-providers/builtin", `{"base_url":"https://vllm.example.com/v1"}`)
	s.refused(t, "INVALID_REQUEST", put, `{"base_url":"https://vllm.example.com/v1","credential":"VLLM_KEY"}`)
	s.must(t, "PUT credentials/VLLM_KEY", `{"allowed_hosts":["other.example.com"]}`, nil)
	s.refused(t, "INVALID_REQUEST", put, `{"base_url":"https://vllm.example.com/v1","credential":"VLLM_KEY"}`)
	s.must(t, "PUT credentials/VLLM_KEY", `{"allowed_hosts":["*.example.com"]}`, nil)
	var p struct {
		Name, Kind string
		BaseURL    string  `json:"base_url"`
		Credential *string `json:"credential"`
		Timeout    int     `json:"timeout_seconds"`
	}
	s.must(t, put, `{"base_url":"https://vllm.example.com/v1","credential":"VLLM_KEY"}`, &p)
	if p.Kind != "openai" || p.Timeout != 120 || p.Credential == nil || *p.Credential != "VLLM_KEY" {
		t.Errorf("the provider is %+v", p)
	}
	s.must(t, "PUT model-providers/anthropic", `{}`, &p)
	if p.Kind != "anthropic" || p.BaseURL != "https://api.anthropic.com" || p.Credential != nil {
		t.Errorf("the provider anthropic is %+v", p)
	}
	s.must(t, put, `{"base_url":"https://vllm.example.com/v2"}`, nil)
	var list []struct{ Name string }
	s.must(t, "GET model-providers", "", &list)
	if len(list) != 2 || list[0].Name != "anthropic" || list[1].Name != "vllm" {
		t.Errorf("the list is %+v", list)
	}
	s.must(t, "DELETE model-providers/vllm", "", nil)
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE model-providers/vllm", "")
	var rows []struct{ Action string }
	s.must(t, "GET admin-log?object=model_providers&object_id=vllm", "", &rows)
	var actions []string
	for _, r := range rows {
		actions = append(actions, r.Action)
	}
	if got := strings.Join(actions, " "); got != "delete update insert" {
		t.Errorf("the log of changes has %q", got)
	}
	s.must(t, "PATCH ", `{"fallback_models":["openai/gpt-5-mini","anthropic/claude-haiku-4-5"]}`, nil)
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"fallback_models":["openai/gpt-5-mini","openai/gpt-5-mini"]}`)
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"fallback_models":["nothing"]}`)
	var ws struct {
		Fallbacks []string `json:"fallback_models"`
	}
	s.must(t, "PATCH ", `{"name":"Demo"}`, &ws)
	if len(ws.Fallbacks) != 2 || ws.Fallbacks[0] != "openai/gpt-5-mini" {
		t.Errorf("the fallback models are %q", ws.Fallbacks)
	}
	s.must(t, "PATCH ", `{"fallback_models":[]}`, &ws)
	if len(ws.Fallbacks) != 0 {
		t.Errorf("the fallback models are %q after their removal", ws.Fallbacks)
	}
}
