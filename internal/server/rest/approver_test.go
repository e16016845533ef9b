package rest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// TestSenderIsNotTheApprover checks a workspace that requires another approver: the key that sent a
// message and the keys of its rotation can deny a call of its turn, but not allow it.
func TestSenderIsNotTheApprover(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	require(t, s, workspace.Change{SeparateApprover: new(true)})
	first := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	second := rotate(t, s, first)
	third := rotate(t, s, second)
	ask := func(key string) question {
		return s.open(t, call{method: "POST", path: "messages", key: key, body: body(t, "@call gate {}\n@say Done.")}).asked()
	}
	for sender, approvers := range map[string][]string{first: {first, second, third}, second: {first, second, third}} {
		q := ask(sender)
		for _, key := range approvers {
			r := s.get(t, call{method: "POST", path: q.DecideURL, key: key, body: allow})
			if r.status != 403 || r.Error.Code != "APPROVER_IS_SENDER" || !strings.Contains(r.text, "permission_error") {
				t.Errorf("%d %s", r.status, r.text)
			}
		}
		if r := s.get(t, call{path: "approvals/" + q.ApprovalID}); !strings.Contains(r.text, `"status":"pending"`) {
			t.Errorf("%s", r.text)
		}
		if r := s.get(t, call{method: "POST", path: q.DecideURL, key: sender, body: deny}); r.status != 200 {
			t.Errorf("a denial by the sender: %d %s", r.status, r.text)
		}
	}
	q := ask(first)
	s.Gate.Leave <- struct{}{}
	if d, r := s.decide(t, q.DecideURL, allow); d.Status != "allowed" {
		t.Errorf("another key: %d %s", r.status, r.text)
	}
	require(t, s, workspace.Change{SeparateApprover: new(false)})
	q = ask(third)
	s.Gate.Leave <- struct{}{}
	if r := s.get(t, call{method: "POST", path: q.DecideURL, key: third, body: allow}); r.status != 200 {
		t.Errorf("without the rule: %d %s", r.status, r.text)
	}
}

// TestMemberIsNotTheirOwnApprover checks that a member who sent a message cannot allow its calls
// with another of their personal tokens, whether the message came with a token or from a browser.
func TestMemberIsNotTheirOwnApprover(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	require(t, s, workspace.Change{SeparateApprover: new(true)})
	sent, other := s.Issue(t, s.Workspace, apikey.Chat), s.Issue(t, s.Workspace, apikey.Chat)
	for _, sql := range []string{
		`INSERT INTO users (id, email) VALUES ('mbr_a', 'a@example.com'), ('mbr_b', 'b@example.com')`,
		`INSERT INTO members (workspace_id, user_id, role) SELECT w.id, u.id, 'owner' FROM workspaces w, users u`,
		`UPDATE api_keys SET member_id = 'mbr_a' WHERE id IN ('` + sent[4:12] + `', '` + other[4:12] + `')`,
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sender := range []string{sent[4:12], "mbr_a"} {
		q := s.open(t, call{method: "POST", path: "messages", key: sent, body: body(t, "@call gate {}\n@say Done.")}).asked()
		if _, err := s.pool.Exec(t.Context(), `UPDATE turns SET key_id = $1 WHERE state = 'waiting'`, sender); err != nil {
			t.Fatal(err)
		}
		if r := s.get(t, call{method: "POST", path: q.DecideURL, key: other, body: allow}); r.status != 403 ||
			r.Error.Code != "APPROVER_IS_SENDER" {
			t.Errorf("sent by %s: %d %s", sender, r.status, r.text)
		}
		if _, err := s.pool.Exec(t.Context(), `UPDATE turns SET key_id = 'mbr_b' WHERE state = 'waiting'`); err != nil {
			t.Fatal(err)
		}
		s.Gate.Leave <- struct{}{}
		if r := s.get(t, call{method: "POST", path: q.DecideURL, key: other, body: allow}); r.status != 200 {
			t.Errorf("sent by another member: %d %s", r.status, r.text)
		}
	}
}

// TestPatternsOfAdministrators checks a workspace that accepts patterns only from administrators: a
// decision adds none.
func TestPatternsOfAdministrators(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, knowing)
	require(t, s, workspace.Change{AdminPatterns: new(true)})
	plain := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	st := s.open(t, call{method: "POST", path: "messages", key: plain,
		body: body(t, "@call wiki_write {\"page\":\"travel\",\"content\":\"x\"}\n@say Done.")})
	q := st.asked()
	with := `{"decision":"allow","allowlist_pattern":"wiki_write(travel)"}`
	if _, r := s.decide(t, q.DecideURL, with); r.status != 400 || r.Error.Code != "INVALID_ALLOWLIST_PATTERN" ||
		!strings.Contains(r.Error.Message, "administrators") {
		t.Errorf("%d %s", r.status, r.text)
	}
	if d, r := s.decide(t, q.DecideURL, allow); d.Status != "allowed" || d.Pattern != nil {
		t.Errorf("%d %s", r.status, r.text)
	}
	st.rest()
	var patterns int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM allowlist`).Scan(&patterns); err != nil || patterns != 0 {
		t.Errorf("%d patterns, %v", patterns, err)
	}
}

func require(t *testing.T, s *service, c workspace.Change) {
	t.Helper()
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, c); err != nil {
		t.Fatal(err)
	}
}

// rotate replaces a key and returns the new one. The old one stays valid.
func rotate(t *testing.T, s *service, key string) string {
	t.Helper()
	_, text, err := s.Keys.Rotate(t.Context(), s.Workspace.ID, key[4:12], time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
