package admin_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// TestWorkspaceIsChanged changes settings, and resets some to those of the server. The log names
// the key, its client and the request.
func TestWorkspaceIsChanged(t *testing.T) {
	t.Parallel()
	s := start(t)
	var w struct {
		Instructions      string
		Model             *string
		MaxTurns          int    `json:"max_turns"`
		MessagesPerMinute *int   `json:"messages_per_minute"`
		HistoryTokens     *int   `json:"history_tokens"`
		SearchLanguage    string `json:"search_language"`
	}
	if s.must(t, "GET ", "", &w); w.HistoryTokens != nil {
		t.Errorf("a new workspace has history_tokens %d", *w.HistoryTokens)
	}
	s.must(t, "PATCH ", `{"instructions":"","model":"openai/x","max_turns":7,"messages_per_minute":0,"history_tokens":24000,`+
		`"search_language":"german"}`, &w, "X-Request-Id", "mine")
	if w.Model == nil || w.MaxTurns != 7 || w.MessagesPerMinute == nil || *w.MessagesPerMinute != 0 || w.HistoryTokens == nil ||
		*w.HistoryTokens != 24000 || w.SearchLanguage != "german" {
		t.Errorf("changed to %+v", w)
	}
	s.must(t, "PATCH ", `{"model":null,"messages_per_minute":null,"history_tokens":null}`, nil)
	w.Model, w.MessagesPerMinute, w.HistoryTokens = nil, nil, new(1)
	if s.must(t, "GET ", "", &w); w.Model != nil || w.MessagesPerMinute != nil || w.HistoryTokens != nil || w.MaxTurns != 7 {
		t.Errorf("reset to %+v", w)
	}
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"max_turns":null}`)
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"max_turns":100000}`)
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"history_tokens":-1}`)
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"history_tokens":2147483647}`)
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"search_language":null}`)
	if text := s.refused(t, "INVALID_REQUEST", "PATCH ", `{"search_language":"klingon"}`).text; !strings.Contains(text, `"arabic","danish"`) {
		t.Errorf("the violation does not list the languages: %s", text)
	}

	var log []struct {
		Action string
		Actor  struct {
			Kind, ID, Name, Address string
			RequestID               string `json:"request_id"`
		}
		Before, After struct {
			MaxTurns       int    `json:"max_turns"`
			SearchLanguage string `json:"search_language"`
		}
	}
	s.must(t, "GET admin-log?object=workspaces&actor="+s.Key[4:12], "", &log)
	if len(log) != 2 {
		t.Fatalf("logged %+v", log)
	}
	first := log[1]
	if a := first.Actor; a.Kind != "key" || a.ID != s.Key[4:12] || a.Name == "" || a.Address != "127.0.0.1" || a.RequestID != "mine" ||
		first.Before.MaxTurns == 7 || first.After.MaxTurns != 7 ||
		first.Before.SearchLanguage != "english" || first.After.SearchLanguage != "german" {
		t.Errorf("logged %+v", first)
	}
	s.must(t, "GET /api/v1/admin/log?limit=1", "", &log)
	s.refused(t, "INVALID_REQUEST", "GET admin-log?since=yesterday", "")
}

// TestTwoAdministratorsLoseNothing has eight administrators change what they have read at the same
// time: one succeeds in each round.
func TestTwoAdministratorsLoseNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 3 {
		tag := s.must(t, "GET ", "", nil).header.Get("ETag")
		codes := make([]string, 8)
		var wg sync.WaitGroup
		for i := range codes {
			wg.Go(func() { codes[i] = s.do(t, "PATCH ", `{"name":"Demo"}`, "If-Match", tag).Error.Code })
		}
		wait.Until(t, "all changes", wg.Wait)
		won := 0
		for _, code := range codes {
			switch code {
			case "":
				won++
			case "PRECONDITION_FAILED":
			default:
				t.Errorf("failed with %s", code)
			}
		}
		if won != 1 {
			t.Errorf("%d changes of %d from the same version", won, len(codes))
		}
	}
	s.refused(t, "INVALID_REQUEST", "PATCH ", `{"name":"Demo"}`, "If-Match", "x")
	s.must(t, "PATCH ", `{"name":"Demo"}`, nil, "If-Match", "*")
}

// TestBudgetsAreAdministered sets, lists and deletes budgets. The limits show their use, and the
// log of changes has each change.
func TestBudgetsAreAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	var b struct {
		Kind   string
		Tokens *int64 `json:"max_tokens"`
		Used   *struct{ Tokens int64 }
	}
	if s.must(t, "PUT budgets/workspace", `{"max_tokens":500,"max_cost_usd":2.5}`, &b); b.Kind != "workspace" || b.Tokens == nil ||
		*b.Tokens != 500 || b.Used == nil {
		t.Errorf("set %+v", b)
	}
	b.Used = nil
	if s.must(t, "PUT budgets/user", `{"max_tokens":9}`, &b); b.Used != nil {
		t.Errorf("each user: %+v", b)
	}
	s.must(t, "PUT budgets/user", `{"subject":"team/anna","max_tokens":10}`, nil)
	s.must(t, "PUT budgets/user", `{"subject":"team/anna","max_tokens":11}`, nil)
	s.refused(t, "INVALID_REQUEST", "PUT budgets/workspace", `{"subject":"x","max_tokens":1}`)
	s.refused(t, "INVALID_REQUEST", "PUT budgets/key", `{}`)
	s.refused(t, "INVALID_REQUEST", "PUT budgets/key", `{"max_tokens":1.5}`)
	s.refused(t, "INVALID_REQUEST", "PUT budgets/key", `{"max_cost_usd":-1}`)
	s.refused(t, "OBJECT_NOT_FOUND", "PUT budgets/planet", `{"max_tokens":1}`)
	first := s.must(t, "GET budgets?limit=2", "", nil)
	if !first.HasMore || !strings.Contains(s.must(t, "GET budgets?limit=2&cursor="+*first.NextCursor, "", nil).text, `"kind":"workspace"`) {
		t.Errorf("pages: %s", first.text)
	}
	if text := s.must(t, "GET limits", "", nil).text; !strings.Contains(text, `"max_tokens":11`) {
		t.Errorf("limits: %s", text)
	}
	s.must(t, "DELETE budgets/user?subject=team/anna", "", nil)
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE budgets/user?subject=team/anna", "")
	if text := s.must(t, "GET admin-log?object=budgets", "", nil).text; strings.Count(text, `"action"`) != 5 ||
		strings.Count(text, `"actor_kind":"key"`)+strings.Count(text, `"kind":"key"`) < 5 {
		t.Errorf("log: %s", text)
	}
}
