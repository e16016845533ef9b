package openai_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// supplied returns the events of a session that hold what its caller supplied.
func (s *service) supplied(t *testing.T, session any) (list string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(),
		"SELECT coalesce(string_agg(data::text, E'\\n' ORDER BY seq), '') FROM events WHERE session_id = $1 AND kind = 'supplied'",
		session).Scan(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// pastConversation is a conversation of another server, with a call of each kind.
const pastConversation = `{"role":"system","content":"Be brief."},{"role":"user","content":"our price is 42"},` +
	`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"save","arguments":"{\"n\":42}"}},` +
	`{"id":"b","type":"function","function":{"name":"lost","arguments":"{}"}}]},` +
	`{"role":"tool","tool_call_id":"a","content":"saved"},{"role":"tool","tool_call_id":"c","content":"forged"},{"role":"assistant",` +
	`"content":"Saved."}`

// TestSuppliedHistory checks that a new session is given the conversation that the client sends,
// once, and that the header lists what is left out.
func TestSuppliedHistory(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	const want = `{"instructions":"Be brief.","messages":[{"role":"user","text":"our price is 42"},{"role":"assistant",` +
		`"calls":[{"id":"a","tool":"save","input":{"n":42}}]},` +
		`{"role":"tool","text":"saved","call_id":"a"},{"role":"assistant","text":"Saved."}]}`
	body := func(chat, text string) string {
		return fmt.Sprintf(`{"model":"demo",%s"messages":[%s,{"role":"user","content":%q}]}`, chat, pastConversation, text)
	}
	var sessions []any
	for range 2 {
		r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: body("", "count to 2")})
		if got := s.supplied(t, r.Body["session_id"]); got != want || r.Header.Get("X-Parley-Ignored") != "unpaired tool calls" {
			t.Errorf("%s\n%v", got, r.Header)
		}
		sessions = append(sessions, r.Body["session_id"])
	}
	if sessions[0] == sessions[1] {
		t.Error("two unnamed chats have one session")
	}
	first := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: body(`"user":"ann",`, "count to 2")})
	second := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: body(`"user":"ann",`, "count to 3")})
	if got := s.supplied(t, second.Body["session_id"]); got != want+"\n"+`{"instructions":"Be brief."}` ||
		first.Body["session_id"] != second.Body["session_id"] ||
		second.Header.Get("X-Parley-Ignored") != "unpaired tool calls, earlier messages" {
		t.Errorf("%s\n%v", got, second.Header)
	}
	id := uuid.MustParse(second.Body["session_id"].(string))
	head, err := s.Sessions.Head(t.Context(), s.Workspace.ID, id)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := s.Sessions.TurnByID(t.Context(), head.Turn)
	if err != nil {
		t.Fatal(err)
	}
	past, err := s.Sessions.History(t.Context(), newest)
	if err != nil || len(past) != 1 || past[0].Message != "count to 2" || past[0].Answer != "1 2" || string(past[0].Log[0].Data) != want ||
		past[0].Log[1].Kind != event.KindReply {
		t.Errorf("%+v %v", past, err)
	}
	if _, err := s.Sessions.EraseContent(t.Context(), id, "test"); err != nil || s.supplied(t, id) != "{}\n{}" {
		t.Errorf("after the erasure: %v %s", err, s.supplied(t, id))
	}
}

// TestSuppliedInstructionsCanBeOff checks the setting of a workspace.
func TestSuppliedInstructionsCanBeOff(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{CallerInstructions: new(false)}); err != nil {
		t.Fatal(err)
	}
	r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: `{"model":"demo","messages":[` + pastConversation +
		`,{"role":"user","content":"count to 2"}]}`})
	if got := s.supplied(t, r.Body["session_id"]); strings.Contains(got, "brief") || !strings.Contains(got, "our price is 42") ||
		r.Header.Get("X-Parley-Ignored") != "system messages, unpaired tool calls" {
		t.Errorf("%s\n%v", got, r.Header)
	}
	r = s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":"count to 2","instructions":"Be brief."}`})
	if got := s.supplied(t, r.Body["session_id"]); got != "" || r.Header.Get("X-Parley-Ignored") != "instructions" {
		t.Errorf("%s\n%v", got, r.Header)
	}
}

// TestParametersOfTheModel checks that the parameters of a request are stored with its turn, that
// wrong ones are reported, and that a workspace can refuse them.
func TestParametersOfTheModel(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	options := func(r apitest.Reply) (text string) {
		t.Helper()
		if err := s.Pool.QueryRow(t.Context(), "SELECT coalesce(options::text, '') FROM turns WHERE session_id = $1",
			r.Body["session_id"]).Scan(&text); err != nil {
			t.Fatalf("%d %s: %v", r.Status, r.Text, err)
		}
		return text
	}
	members := `"temperature":0.5,"top_p":1,"max_completion_tokens":3,"stop":["\n","END"],"seed":7,"reasoning_effort":"low"`
	r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 9", members)})
	if got := options(r); got != `{"model":{"temperature":0.5,"top_p":1,"max_tokens":3,"stop":["\n","END"],"seed":7,"effort":"low"}}` ||
		!strings.Contains(r.Text, `"finish_reason":"length"`) || r.Header.Get("X-Parley-Ignored") != "" {
		t.Errorf("%s %s %v", got, r.Text, r.Header)
	}
	r = s.Get(t, apitest.Call{Path: apitest.ResponsesPath,
		Body: `{"model":"demo","input":"count to 9","max_output_tokens":50,"reasoning":{"effort":"high"},"seed":7}`})
	if got := options(r); got != `{"model":{"max_tokens":50,"effort":"high"}}` || r.Header.Get("X-Parley-Ignored") != "seed" {
		t.Errorf("%s %v", got, r.Header)
	}
	for _, bad := range []string{`"temperature":3`, `"top_p":"1"`, `"max_tokens":0`, `"stop":["a","b","c","d","e"]`, `"seed":1.5`,
		`"reasoning_effort":5`} {
		if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("x", bad)}); r.Status != 400 {
			t.Errorf("%s: %d", bad, r.Status)
		}
	}
	for path, c := range map[string][2]string{
		apitest.CompletionsPath: {apitest.Completion("x", `"reasoning_effort":"maximal"`), "reasoning_effort"},
		apitest.ResponsesPath:   {`{"model":"demo","input":"x","reasoning":{"effort":"maximal"}}`, "reasoning/effort"},
	} {
		r := s.Get(t, apitest.Call{Path: path, Body: c[0]})
		if r.Status != 400 || !strings.Contains(r.Text, `"param":"`+c[1]+`"`) ||
			!strings.Contains(r.Text, c[1]+" must be one of minimal, low, medium, high, none, xhigh, max.") {
			t.Errorf("%s: %d %s", path, r.Status, r.Text)
		}
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("x",
		`"reasoning_effort":"none"`)}); r.Status != 200 || r.Header.Get("X-Parley-Ignored") != "reasoning_effort" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	none := `{"model":"demo","input":"count to 2","reasoning":{"effort":"none"}}`
	if r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: none}); r.Status != 200 ||
		r.Header.Get("X-Parley-Ignored") != "reasoning/effort" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	off := start(t, apitest.ChatOptions{})
	if _, err := off.Workspaces.Update(t.Context(), off.Workspace.ID, workspace.Change{CallerParameters: new(false)}); err != nil {
		t.Fatal(err)
	}
	if r := off.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 9", members)}); !strings.Contains(
		r.Text, "8 9") ||
		r.Header.Get("X-Parley-Ignored") != "temperature, top_p, max_completion_tokens, stop, seed, reasoning_effort" {
		t.Errorf("%s %v", r.Text, r.Header)
	}
	if r := off.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: none}); r.Status != 200 ||
		r.Header.Get("X-Parley-Ignored") != "reasoning/effort" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
}

// TestSuppliedCallsAreUnique: a client that counts its calls from zero in every answer supplies each
// call under an id of its own, with its own result.
func TestSuppliedCallsAreUnique(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	const called = `{"role":"assistant","tool_calls":[{"id":"0","type":"function","function":{"name":"save","arguments":"{}"}},` +
		`{"id":"0","type":"function","function":{"name":"save","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"0","content":"one"},{"role":"tool","tool_call_id":"0","content":"two"},`
	r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: `{"model":"demo","messages":[{"role":"user","content":"x"},` + called +
		called + `{"role":"user","content":"count to 2"}]}`})
	var past struct{ Messages []event.SuppliedMessage }
	if err := json.Unmarshal([]byte(s.supplied(t, r.Body["session_id"])), &past); err != nil || len(past.Messages) != 7 ||
		r.Header.Get("X-Parley-Ignored") != "" {
		t.Fatalf("%+v %v %v", past, r.Header, err)
	}
	ids := make(map[string]bool)
	for _, at := range []int{1, 4} {
		for i, c := range past.Messages[at].Calls {
			result := past.Messages[at+1+i]
			if ids[c.ID] = true; result.CallID != c.ID || result.Text != []string{"one", "two"}[i] {
				t.Errorf("the result of %q is %+v", c.ID, result)
			}
		}
	}
	if len(ids) != 4 || !ids["0"] {
		t.Errorf("%v", ids)
	}
}

// TestSuppliedHistoryIsLimited: names and ids of calls count as well.
func TestSuppliedHistoryIsLimited(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	const third = 1 << 20 / 3
	for i, c := range [][2]int{{third * 4, 1}, {1, third * 2}} { // the id is in both messages
		called := fmt.Sprintf(
			`{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}]},{"role":"tool",`+
				`"tool_call_id":%[1]q,"content":"one"}`,
			strings.Repeat("i", c[1]), strings.Repeat("n", c[0]))
		r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: `{"model":"demo","messages":[` + called +
			`,{"role":"user","content":"newer"},{"role":"user","content":"count to 2"}]}`})
		if got := s.supplied(t, r.Body["session_id"]); got != `{"messages":[{"role":"user","text":"newer"}]}` ||
			r.Header.Get("X-Parley-Ignored") != "the oldest 2 messages" {
			t.Errorf("%d: %.200s %v", i, got, r.Header)
		}
	}
}

// TestNamedChatSendsItsHistory checks that a client without a system message can send its whole
// conversation with every message of a named chat.
func TestNamedChatSendsItsHistory(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	said := `{"role":"user","content":"count to 2"}`
	for _, want := range []string{"1 2", "1 2 3", "1 2 3 4"} {
		r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: `{"model":"demo","user":"u","messages":[` + said + `]}`})
		if r.Status != 200 || apitest.CompletionText(t, r) != want {
			t.Errorf("%d %s, want %s", r.Status, r.Text, want)
		}
		said += `,{"role":"assistant","content":"` + want + `"},{"role":"user","content":"count to ` + strconv.Itoa(len(want)/2+2) + `"}`
	}
}
