package rest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// edit names an agent of the service's workspace.
func (s *service) edit(name string) agent.Edit {
	return agent.Edit{Workspace: s.Workspace.ID, Name: name, Author: "cli:anna"}
}

// draft saves a draft with these instructions.
func (s *service) draft(t *testing.T, name, instructions string) {
	t.Helper()
	_, err := s.Agents.SaveDraft(t.Context(), s.edit(name), func(d agent.Definition) (agent.Definition, error) {
		d.Instructions = instructions
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newAgent creates an agent whose turns may call the model once.
func (s *service) newAgent(t *testing.T, name string) {
	t.Helper()
	d := agent.Defaults()
	d.Limits.MaxTurns = 1
	if _, err := s.Agents.Create(t.Context(), s.edit(name), d, ""); err != nil {
		t.Fatal(err)
	}
}

// ran lists the agents of all turns, oldest first, with their versions and limits; and of their
// started events.
func (s *service) ran(t *testing.T) (turns, started []string) {
	t.Helper()
	for sql, to := range map[string]*[]string{
		`SELECT agent || ' ' || agent_version || ' ' || max_turns FROM turns ORDER BY start_seq`:                              &turns,
		`SELECT (data->>'agent') || ' ' || (data->>'agent_version') FROM events WHERE kind = 'started' ORDER BY turn_id, seq`: &started,
	} {
		rows, err := s.pool.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			*to = append(*to, line)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
	return turns, started
}

// TestMessagesNameAnAgent continues a session with other agents and versions. Each turn records its
// own, in the order of the messages, also where another version is published meanwhile.
func TestMessagesNameAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.newAgent(t, "support")
	first := s.say(t, held)
	id := sessionOf(t, first.until("open")[0])
	s.Gate.Await(t)
	s.draft(t, "", "Be quick.")
	if _, err := s.Agents.Publish(t.Context(), s.edit(""), "Faster."); err != nil {
		t.Fatal(err)
	}
	s.Gate.Leave <- struct{}{}
	first.rest()
	at := `"session_id":"` + id + `"`
	s.draft(t, "support", "A draft.")
	for _, fields := range []string{`"agent":"default"`, `"agent":"support"`, `"agent_version":1`,
		`"agent":"support","agent_version":"draft"`} {
		if got := names(s.say(t, "@text 1 delta", at, fields).rest()); got != "open text usage done" {
			t.Fatalf("%s: %s", fields, got)
		}
	}
	turns, started := s.ran(t)
	if want := "[default 1 50 default 2 50 support 1 1 default 1 50 support 0 1]"; fmt.Sprint(turns) != want {
		t.Errorf("turns ran as %v, want %s", turns, want)
	}
	if want := "[default 1 default 2 support 1 default 1 support draft]"; fmt.Sprint(started) != want {
		t.Errorf("turns started as %v, want %s", started, want)
	}
	r := s.get(t, call{path: "sessions/" + id + "/messages?limit=100&order=asc"})
	var messages []map[string]any
	if err := json.Unmarshal(r.Data, &messages); err != nil || len(messages) != 10 || messages[9]["agent"] != "support" ||
		messages[9]["agent_version"] != "draft" || messages[0]["agent"] != "default" || messages[0]["agent_version"] != 1.0 {
		t.Errorf("the history is %s", r.text)
	}
}

// TestUnknownAgentsAreNamed checks names and versions that do not exist, and drafts for keys that
// may not change the configuration. None of them starts a turn.
func TestUnknownAgentsAreNamed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.newAgent(t, "support")
	s.draft(t, "", "A draft.")
	plain := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	for _, c := range []struct {
		fields, key string
		status      int
		code        fault.Code
		candidate   string
	}{
		{`"agent":"suport"`, s.Key, 400, fault.UnknownAgent, "support"},
		{`"agent_version":7`, s.Key, 400, fault.UnknownAgentVersion, "1"},
		{`"agent":"support","agent_version":"draft"`, s.Key, 400, fault.UnknownAgentVersion, "1"},
		{`"agent_version":0`, s.Key, 400, fault.InvalidRequestBody, ""},
		{`"agent_version":"latest"`, s.Key, 400, fault.InvalidRequestBody, ""},
		{`"agent_version":"draft"`, plain, 403, fault.InsufficientScope, ""},
	} {
		r := s.get(t, call{method: "POST", path: "messages", key: c.key, body: body(t, "x", c.fields)})
		if r.status != c.status || r.Error.Code != string(c.code) || c.candidate != "" && (len(r.Error.Candidates) == 0 ||
			r.Error.Candidates[0] != c.candidate) {
			t.Errorf("%s: %d %s", c.fields, r.status, r.text)
		}
	}
	if turns, _ := s.ran(t); len(turns) != 0 {
		t.Errorf("started %v", turns)
	}
}

// TestEveryProtocolNamesAnAgent sends a message to another agent in each protocol.
func TestEveryProtocolNamesAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.newAgent(t, "support")
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"model":"demo/support","messages":[{"role":"user","content":"@say hi"}]}`},
		{"/v1/responses", `{"model":"demo/support","input":"@say hi"}`},
		{apitest.UIChatPath, `{"id":"c","trigger":"submit-message","agent":"support","messages":[{"id":"m","role":"user",` +
			`"parts":[{"type":"text","text":"@say hi"}]}]}`},
		{apitest.RunsPath, `{"threadId":"t","runId":"r","protocolVersion":"1.0","state":{},"messages":[{"id":"m","role":"user",` +
			`"content":"@say hi"}],"tools":[],"context":[],"forwardedProps":{"agent":"support"}}`},
		{"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"command":"@say hi",` +
			`"agent":"support"}}}`},
		{"/a2a", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user",` +
			`"parts":[{"kind":"text","text":"@say hi"}],"metadata":{"agent":"support"}},"configuration":{"blocking":true}}}`},
	} {
		if r := s.get(t, call{method: "POST", path: c.path, body: c.body,
			header: []string{"Accept", "application/json, text/event-stream"}}); r.status != 200 {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
	turns, _ := s.ran(t)
	if want := "[support 1 1 support 1 1 support 1 1 support 1 1 support 1 1 support 1 1]"; fmt.Sprint(turns) != want {
		t.Errorf("turns ran as %v", turns)
	}
}
