package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/turn"
)

// knowing gives turns the tools for documents, and rules for them.
func knowing(c *turn.Config) {
	c.Tools = func(*toolenv.Run) []tool.Tool { return knowledge.Tools(wiki.New(c.Pool), nil) }
	c.Permissions, c.Window = permission.New(c.Pool), time.Minute
}

// TestAllowedPatternsAskNoMore checks that a pattern that comes with an approval allows matching
// calls from then on, and no others. The suggested pattern is accepted.
func TestAllowedPatternsAskNoMore(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, knowing)
	key := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead) // lacks wiki:write
	write := func(page string) *stream {
		return s.open(t, call{method: "POST", path: "messages", key: key,
			body: body(t, fmt.Sprintf("@call wiki_write {\"page\":%q,\"content\":\"x\"}\n@say Done.", page))})
	}
	st := write("travel")
	q := st.asked()
	if q.Operations[0].SuggestedPattern == "" {
		t.Fatalf("%+v", q)
	}
	pattern, _ := json.Marshal(q.Operations[0].SuggestedPattern)
	for _, other := range []string{`"wiki_write(expenses)"`, `"read(*)"`} {
		if _, r := s.decide(t, q.DecideURL, `{"decision":"allow","allowlist_pattern":`+other+`}`); r.status != 400 ||
			r.Error.Code != "INVALID_ALLOWLIST_PATTERN" {
			t.Errorf("%s: %d %s", other, r.status, r.text)
		}
	}
	d, r := s.decide(t, q.DecideURL, `{"decision":"allow","allowlist_pattern":`+string(pattern)+`}`)
	if d.Status != "allowed" || d.Pattern == nil || *d.Pattern != q.Operations[0].SuggestedPattern {
		t.Errorf("%d %s", r.status, r.text)
	}
	if got := names(st.rest()); got != "tool_use tool_result text usage done" {
		t.Errorf("%s", got)
	}
	if got := names(write("travel").rest()); got != "open tool_use tool_result text usage done" {
		t.Errorf("its like: %s", got)
	}
	write("expenses").asked()
}

// TestWikiWriteNeedsItsScopeOrAnApproval checks that a caller with the scope needs no approval.
func TestWikiWriteNeedsItsScopeOrAnApproval(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, knowing)
	const command = "@call wiki_write {\"page\":\"travel\",\"content\":\"x\"}\n@say Done."
	for _, scope := range []apikey.Scope{apikey.WikiWrite, apikey.MCP} {
		key := s.Issue(t, s.Workspace, apikey.Chat, scope)
		frames := s.open(t, call{method: "POST", path: "messages", key: key, body: body(t, command)}).rest()
		if got := names(frames); got != "open tool_use tool_result text usage done" || !strings.Contains(frames[2].data, `"ok":true`) {
			t.Errorf("with %s: %v", scope, frames)
		}
	}
	plain := s.Issue(t, s.Workspace, apikey.Chat, apikey.MCPRead)
	s.open(t, call{method: "POST", path: "messages", key: plain, body: body(t, command)}).asked()
}

// TestAKeyAllowsOnlyWhatItMayDo checks that a key without wiki:write can deny a write to the wiki,
// but not allow it.
func TestAKeyAllowsOnlyWhatItMayDo(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, knowing)
	plain, writer := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead), s.Issue(t, s.Workspace, apikey.Chat, apikey.WikiWrite)
	ask := func() (*stream, question) {
		st := s.open(t, call{method: "POST", path: "messages", key: plain,
			body: body(t, "@call wiki_write {\"page\":\"travel\",\"content\":\"x\"}\n@say Done.")})
		return st, st.asked()
	}
	st, q := ask()
	for _, said := range []string{`{"decision":"allow"}`, `{"decision":"allow","allowlist_pattern":"wiki_write(travel)"}`} {
		if r := s.get(t, call{method: "POST", path: q.DecideURL, key: plain, body: said}); r.status != 403 ||
			r.Error.Code != "INSUFFICIENT_SCOPE" || r.Error.RequiredScope != "wiki:write" {
			t.Errorf("%s: %d %s", said, r.status, r.text)
		}
	}
	if r := s.get(t, call{method: "POST", path: q.DecideURL, key: writer, body: allow}); r.status != 200 {
		t.Errorf("%d %s", r.status, r.text)
	}
	if rest := st.rest(); !strings.Contains(rest[1].data, `"ok":true`) {
		t.Errorf("%v", rest)
	}
	_, q = ask()
	if r := s.get(t, call{method: "POST", path: q.DecideURL, key: plain, body: `{"decision":"deny"}`}); r.status != 200 {
		t.Errorf("%d %s", r.status, r.text)
	}
}

// TestTheActorOfADecisionIsOnRecord checks that a backend with one key can record the approver.
func TestTheActorOfADecisionIsOnRecord(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	q := s.say(t, "@call gate {}").asked()
	for actor, param := range map[string]string{`""`: "/actor", `7`: "/actor", `"` + strings.Repeat("é", 256) + `"`: "/actor",
		`"anna\nallowed by root"`: "/actor", `"anna\u0000"`: "/actor", "\"anna \u202etoor\"": "/actor", `"anna\u2066"`: "/actor"} {
		if r := s.get(t, call{method: "POST", path: q.DecideURL, body: `{"decision":"allow","actor":` + actor + `}`}); r.status != 400 ||
			len(r.Error.Violations) != 1 || r.Error.Violations[0].Param != param {
			t.Errorf("%.20s: %d %s", actor, r.status, r.text)
		}
	}
	name := strings.Repeat("é", 255)
	for range 2 {
		if r := s.get(t, call{method: "POST", path: q.DecideURL, body: `{"decision":"allow","actor":"` + name + `"}`}); r.status != 200 ||
			!strings.Contains(r.text, `"actor":"`+name+`"`) {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "approvals/" + q.ApprovalID}); !strings.Contains(r.text, `"actor":"`+name+`"`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	var logged string
	if err := s.pool.QueryRow(t.Context(), `SELECT data->>'actor' FROM events WHERE kind = 'decision'`).Scan(&logged); err != nil ||
		logged != name {
		t.Errorf("the log has %q, %v", logged, err)
	}
}

// TestQuestionsWaitTenMinutes checks that a question expires after ten minutes by PostgreSQL's
// clock, as documented.
func TestQuestionsWaitTenMinutes(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(0))
	q := s.say(t, "@call gate {}").asked()
	s.register(t, "STRIPE_KEY")
	secret := s.say(t, `@call request_secret {"key_name":"STRIPE_KEY","reason":"r"}`).asked()
	for _, q := range []question{q, secret} {
		var seconds float64
		var shown bool
		err := s.pool.QueryRow(t.Context(),
			`SELECT extract(epoch FROM expires_at - created_at), expires_at = $2 FROM approvals WHERE id = $1`, q.ApprovalID,
			q.ExpiresAt).Scan(&seconds, &shown)
		if err != nil || seconds < 599.9 || seconds > 600.1 || !shown {
			t.Errorf("%s: %v seconds, %v, %v", q.Kind, seconds, shown, err)
		}
	}
	if limits := document(t, s).Extensions["x-limits"].(map[string]any); limits["approval_window_seconds"] != 600.0 {
		t.Errorf("documented as %v", limits["approval_window_seconds"])
	}
}

// TestWaitingIsNoTimeOfTheTurn checks that waiting for approvals does not count towards the time
// limit of a turn, and may exceed it.
func TestWaitingIsNoTimeOfTheTurn(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	st := s.say(t, "@call gate {}\n@say Done.", `"limits":{"max_response_seconds":1}`)
	q := st.asked()
	for waited := false; !waited; {
		if err := s.pool.QueryRow(t.Context(),
			`SELECT clock_timestamp() > created_at + interval '1.2 seconds' FROM approvals WHERE id = $1`, q.ApprovalID).Scan(&waited); err != nil {
			t.Fatal(err)
		}
	}
	s.Gate.Leave <- struct{}{}
	if d, r := s.decide(t, q.DecideURL, allow); d.Status != "allowed" {
		t.Fatalf("%d %s", r.status, r.text)
	}
	if got := names(st.rest()); got != "tool_use tool_result text usage done" {
		t.Errorf("then came %s", got)
	}
}
