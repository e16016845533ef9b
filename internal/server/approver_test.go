package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestApproverNeedsTheScopeAndAnotherKey requests a write to the wiki in every chat protocol. The
// question names what the approver needs, a key without it gets 403, and its denial counts.
func TestApproverNeedsTheScopeAndAnotherKey(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour, Wiki: true})
	const command = "@call wiki_write {\"page\":\"tea\",\"content\":\"x\"}\n@say the end"
	plain := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	for _, c := range []struct{ name, key, code, says string }{
		{"scope", plain, "INSUFFICIENT_SCOPE", "Only a key with the scope wiki:write can allow this."},
		{"sender", s.Key, "APPROVER_IS_SENDER", "The key that sent the message cannot allow it."},
	} {
		if c.name == "sender" {
			if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{SeparateApprover: new(true)}); err != nil {
				t.Fatal(err)
			}
			if err := s.setRule(t, "wiki_write", "ask"); err != nil {
				t.Fatal(err)
			}
		}
		by := func(r apitest.Call) apitest.Call {
			r.Key = c.key
			return r
		}
		for _, protocol := range []struct {
			name        string
			ask         apitest.Call
			allow, deny func(asked []string) apitest.Call
		}{
			{"openai", apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(command, `"stream":true`),
				Header: []string{"X-Session-Id", c.name}},
				func(list []string) apitest.Call {
					return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.CodeReply(t, strings.Join(list, ""),
						"allow")), Header: []string{"X-Session-Id", c.name}}
				},
				func(list []string) apitest.Call {
					return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.CodeReply(t, strings.Join(list, ""),
						"deny")), Header: []string{"X-Session-Id", c.name}}
				}},
			{"ai sdk", apitest.UIMessage(c.name, command),
				func(list []string) apitest.Call {
					return apitest.UIAnswer(c.name, apitest.FrameField(list, "approvalId"), true)
				},
				func(list []string) apitest.Call {
					return apitest.UIAnswer(c.name, apitest.FrameField(list, "approvalId"), false)
				}},
			{"ag-ui", apitest.AGUIRun(c.name, "r", command),
				func(list []string) apitest.Call {
					id, _ := apitest.FrameInterrupt(t, list)
					return apitest.AGUIResume(c.name, id, apitest.AGUIApproves)
				},
				func(list []string) apitest.Call {
					id, _ := apitest.FrameInterrupt(t, list)
					return apitest.AGUIResume(c.name, id, `"status":"resolved","payload":{"approved":false}`)
				}},
		} {
			list := s.Stream(t, by(protocol.ask))
			if text := strings.Join(list, "\n"); !strings.Contains(text, c.says) {
				t.Errorf("%s %s: the question does not name the approver: %s", c.name, protocol.name, text)
			}
			r := s.Get(t, by(protocol.allow(list)))
			if !strings.Contains(r.Text, c.code) || c.name == "scope" && !strings.Contains(r.Text, "wiki:write") ||
				r.Status != 403 && protocol.name != "ag-ui" {
				t.Errorf("%s %s: %d %s", c.name, protocol.name, r.Status, r.Text)
			}
			if r := s.Get(t, by(protocol.deny(list))); r.Status != 200 || strings.Contains(r.Text, c.code) {
				t.Errorf("%s %s: a denial: %d %s", c.name, protocol.name, r.Status, r.Text)
			}
		}
	}
	if n := s.pages(t); n != 0 {
		t.Errorf("%d pages were written", n)
	}
}

func (s *service) setRule(t *testing.T, tool, rule string) error {
	t.Helper()
	_, err := s.Pool.Exec(t.Context(), `INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, $2, $3)`, s.Workspace.ID, tool, rule)
	return err
}

func (s *service) pages(t *testing.T) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM documents`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
