package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/turn"
)

const completions = "/openai/v1/chat/completions"

// said makes a completion of one message, with more members before it.
func said(text string, members ...string) string {
	return fmt.Sprintf(`{"model":"demo",%s"messages":[{"role":"user","content":%s}]}`, strings.Join(append(members, ""), ","), quote(text))
}

// content adds the pieces of a streamed completion up.
func content(t *testing.T, list []string) (text, finish string, tokens float64) {
	t.Helper()
	for _, data := range list {
		if data == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
			Usage struct {
				Total float64 `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		tokens += c.Usage.Total
		for _, choice := range c.Choices {
			text, finish = text+choice.Delta.Content, finish+choice.Finish
		}
	}
	return text, finish, tokens
}

// message is the content of a completion in one piece.
func message(t *testing.T, r reply) string {
	t.Helper()
	var c struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if err := json.Unmarshal([]byte(r.text), &c); err != nil || r.status != 200 || len(c.Choices) != 1 {
		t.Fatalf("%d %s: %v", r.status, r.text, err)
	}
	return c.Choices[0].Message.Content
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	list := s.stream(t, call{path: completions, body: said("count to 5", `"stream":true`, `"stream_options":{"include_usage":true}`)})
	text, finish, tokens := content(t, list)
	if text != "1 2 3 4 5" || finish != "stop" || tokens == 0 || list[len(list)-1] != "[DONE]" || len(list) < 7 {
		t.Errorf("%q %q %v in %d frames", text, finish, tokens, len(list))
	}
	if !strings.Contains(list[0], `"usage":null`) {
		t.Errorf("a chunk without usage: %s", list[0])
	}
	if _, _, tokens := content(t, s.stream(t, call{path: "/v1/chat/completions", body: said("count to 5", `"stream":true`)})); tokens != 0 {
		t.Errorf("usage that nobody asked for: %v", tokens)
	}
	r := s.get(t, call{path: completions, body: said("count to 5")})
	if message(t, r) != "1 2 3 4 5" || !strings.Contains(r.text, `"finish_reason":"stop"`) || !strings.Contains(r.text, `"total_tokens":`) {
		t.Errorf("%s", r.text)
	}
	parts := `{"model":"demo","temperature":0.5,"tools":[],"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"x"},{"role":"assistant","content":"y"},` +
		`{"role":"user","content":[{"type":"text","text":"count"},{"type":"text","text":"to 3"}]}]}`
	if r := s.get(t, call{path: completions, body: strings.Replace(parts, "count\"},{\"type\":\"text\",\"text\":\"to 3", "count to 3", 1)}); message(t, r) != "1 2 3" ||
		r.header.Get("X-Parley-Ignored") != "temperature, tools, system messages" {
		t.Errorf("%s %v", r.text, r.header)
	}
	if r := s.get(t, call{path: completions, body: said("count to 2", `"store":true`, `"metadata":{"a":"b"}`, `"conversation":"x"`, `"safety_identifier":"s"`)}); r.header.Get("X-Parley-Ignored") != "conversation, metadata, safety_identifier" {
		t.Errorf("ignored: %v", r.header)
	}
	for _, choice := range []string{`"auto"`, `"none"`, `{"type":"allowed_tools","mode":"auto","tools":[]}`, `{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`} {
		if r := s.get(t, call{path: completions, body: said("count to 2", `"tools":[{}]`, `"tool_choice":`+choice)}); r.status != 200 || r.header.Get("X-Parley-Ignored") != "tool_choice, tools" {
			t.Errorf("%s: %d %v", choice, r.status, r.header)
		}
	}
	if r := s.get(t, call{path: completions, body: said("count to 2", `"store":false`)}); r.header.Get("X-Parley-Ignored") != "store" {
		t.Errorf("ignored: %v", r.header)
	}
	if r := s.get(t, call{path: completions, body: said("@structured {\"n\":1}", `"response_format":{"type":"json_object"}`)}); message(t, r) != `{"n":1}` {
		t.Errorf("%s", r.text)
	}
	if r := s.get(t, call{path: completions, body: said("@structured {\"n\":1}", `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}`)}); message(t, r) != `{"n":1}` {
		t.Errorf("%s", r.text)
	}
}

func TestCompletionsThatFail(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	s.Gate.Leave <- struct{}{}
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no JSON":          {"{", 400, "INVALID_JSON"},
		"no messages":      {`{"model":"demo"}`, 400, "INVALID_REQUEST"},
		"no user":          {`{"model":"demo","messages":[{"role":"system","content":"x"}]}`, 400, "INVALID_REQUEST"},
		"no text":          {said(" "), 400, "INVALID_REQUEST"},
		"an image":         {`{"model":"demo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]}`, 400, "INVALID_REQUEST"},
		"two choices":      {said("x", `"n":2`), 400, "INVALID_REQUEST"},
		"a number as user": {said("x", `"user":7`), 400, "INVALID_REQUEST"},
		"another model":    {strings.Replace(said("x"), "demo", "gpt-4o", 1), 404, "WORKSPACE_NOT_FOUND"},
		"no such skill":    {strings.Replace(said("x"), "demo", "demo/nothing", 1), 400, "UNKNOWN_SKILL"},
		"no such session":  {said("x", `"session_id":"0197a0d2-0000-7000-8000-000000000001"`), 404, "SESSION_NOT_FOUND"},
		"a bad schema":     {said("x", `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"nonsense"}}}`), 400, "INVALID_RESPONSE_SCHEMA"},
		"too large":        {said(strings.Repeat("x", 8<<20)), 413, "PAYLOAD_TOO_LARGE"},
		"a tool's result":  {`{"model":"demo","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":"7"},{"role":"system","content":"x"}]}`, 400, "INVALID_REQUEST"},
		"no format":        {said("x", `"response_format":{}`), 400, "INVALID_REQUEST"},
		"another format":   {said("x", `"response_format":{"type":"json_shema"}`), 400, "INVALID_REQUEST"},
		"a forced call":    {said("x", `"tool_choice":"required"`), 400, "INVALID_REQUEST"},
		"one of these":     {said("x", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]}`), 400, "INVALID_REQUEST"},
		"of these, deeper": {said("x", `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}`), 400, "INVALID_REQUEST"},
		"a function":       {said("x", `"function_call":{"name":"f"}`), 400, "INVALID_REQUEST"},
		"no schema":        {said("x", `"response_format":{"type":"json_schema"}`), 400, "INVALID_REQUEST"},
		"a busy model":     {said("@error model_overloaded"), 503, "model_overloaded"},
		"a failed model":   {said("@error model_error"), 422, "model_error"},
		"no fitting JSON":  {said("@repeat 9\n@structured {\"n\":\"x\"}", inASchema), 422, "structured_output_invalid"},
		"busy, after work": {said("@call touch {}\n@error model_overloaded"), 422, "model_overloaded"},
		"too many turns":   {said("@call gate {}\n@call gate {}", `"limits":{"max_turns":1}`), 422, "max_turns_exceeded"},
	} {
		r := s.get(t, call{path: completions, body: c.body})
		e, _ := r.body["error"].(map[string]any)
		if _, param := e["param"]; r.status != c.status || r.code != c.code || e["message"] == "" || e["type"] == "" || !param {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
		if strings.Contains(r.text, "response_schema") {
			t.Errorf("%s: the client has sent no response_schema: %s", name, r.text)
		}
		if r.code == "UNKNOWN_SKILL" && e["param"] != "model" {
			t.Errorf("%s: the client has sent no %v", name, e["param"])
		}
		if again := r.header.Get("Retry-After") != ""; again != (c.status == 503) || !again && c.status == 422 && r.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %v", name, r.header)
		}
	}
	list := s.stream(t, call{path: completions, body: said("@error model_error", `"stream":true`)})
	if n := len(list); !strings.Contains(list[n-2], `"error":{"message":`) || !strings.Contains(list[n-2], `"code":"model_error"`) || list[n-1] != "[DONE]" {
		t.Errorf("a failed turn: %v", list)
	}
}

// An error names what the client has sent.
func TestCompletionsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		call
		param, message string
	}{
		"user":           {call{body: said("x", `"user":7`)}, "user", "user must be a string."},
		"a long user":    {call{body: said("x", `"user":"`+long+`"`)}, "user", "user has more than 255 bytes."},
		"a long header":  {call{body: said("x"), header: []string{"X-Session-Id", long}}, "X-Session-Id", "X-Session-Id has more than 255 bytes."},
		"messages":       {call{body: `{"model":"demo","messages":{}}`}, "messages", "messages must be an array of messages, each with a role, and hold at least one."},
		"a long message": {call{body: `{"model":"demo","messages":[{"role":"system","content":""},{"role":"user","content":"` + strings.Repeat("x", 200_001) + `"}]}`}, "messages/1/content", "messages/1/content has more than 200000 characters."},
		"content":        {call{body: `{"model":"demo","messages":[{"role":"user","content":7}]}`}, "messages/0/content", "The content of a message is a text, or parts."},
		"a bad schema":   {call{body: said("x", `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"x"}}}`)}, "response_format/json_schema/schema", "response_format/json_schema/schema at /type: "},
		"no schema":      {call{body: said("x", `"response_format":{"type":"json_schema"}`)}, "response_format/json_schema/schema", "response_format/json_schema/schema is missing."},
		"two things":     {call{body: said("x", `"stream":7`, `"n":2`)}, "stream", "stream must be a boolean. n must be at most 1."},
		"tool_choice":    {call{body: said("x", `"tool_choice":{"type":"function","function":{"name":"f"}}`)}, "tool_choice", "tool_choice asks for a call of one of the client's tools, and the agent calls none but its own. For an answer in a shape send response_format with"},
		"no tool_choice": {call{body: said("x", `"tool_choice":5`)}, "tool_choice", "tool_choice must be a string or an object."},
		"a format":       {call{body: said("x", `"response_format":{"type":"json_shema"}`)}, "response_format/type", "response_format/type can be text, json_object, json_schema."},
		"secret_input":   {call{body: said("x", `"secret_input":{}`)}, "secret_input", "secret_input must be an array."},
		"include_usage":  {call{body: said("x", `"stream_options":{"include_usage":1}`)}, "stream_options/include_usage", "stream_options/include_usage must be a boolean."},
	} {
		c.path = completions
		r := s.get(t, c.call)
		e, _ := r.body["error"].(map[string]any)
		if r.status != 400 || e["param"] != c.param || !strings.HasPrefix(e["message"].(string), c.message) {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
}

// A chat is the session that its client names; without a name every call is one.
func TestCompletionsContinueAChat(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	session := func(c call) any {
		c.path = completions
		r := s.get(t, c)
		if r.status != 200 {
			t.Fatalf("%d %s", r.status, r.text)
		}
		return r.body["session_id"]
	}
	named := []call{
		{body: said("count to 2", `"user":"chat-1"`)},
		{body: said("count to 3", `"user":"anna"`), header: []string{"X-OpenWebUI-Chat-Id", "chat-1"}},
		{body: said("count to 4"), header: []string{"X-Session-Id", "chat-1"}},
		{body: said("count to 5"), header: []string{"X-Session-Id", "other", "X-OpenWebUI-Chat-Id", "chat-1"}},
	}
	first := session(named[0])
	for _, c := range append(named, call{body: said("count to 6", `"session_id":`+quote(first.(string)))}) {
		if got := session(c); got != first {
			t.Errorf("%v: session %v, want %v", c, got, first)
		}
	}
	if a, b := session(call{body: said("count to 2")}), session(call{body: said("count to 2")}); a == b || a == first {
		t.Errorf("sessions %v, %v and %v", first, a, b)
	}
}

// What Open WebUI wants for itself is no message; a message that comes with documents is one,
// and a word is one behind documents, too.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	const title, context = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.", "### Task:\nRespond to the user query using the provided context.\n\n<context>\n<source id=\"1\">x</source>\n</context>\n\n"
	chat := []string{"X-OpenWebUI-Chat-Id", "c"}
	for name, c := range map[string]struct {
		text   string
		header []string
		status int
	}{
		"a title":                 {title, chat, 400},
		"a title by a header":     {"What is this about?", append([]string{"X-OpenWebUI-Task", "title_generation"}, chat...), 400},
		"a title of X-Session-Id": {title, []string{"X-Session-Id", "c"}, 400},
		"somebody else's prompt":  {title, nil, 200},
		"a person's heading":      {"### Task:\nWrite a haiku.", []string{"X-OpenWebUI-Chat-Id", "p"}, 200},
		"a placeholder":           {"count to 2", []string{"X-OpenWebUI-Task", "{{TASK}}", "X-OpenWebUI-Chat-Id", "{{CHAT_ID}}"}, 200},
		"documents":               {context + "count to 2", []string{"X-OpenWebUI-Chat-Id", "d", "X-OpenWebUI-Task", ""}, 200},
	} {
		if r := s.get(t, call{path: completions, body: said(c.text), header: c.header}); r.status != c.status {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	var named int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM sessions WHERE caller_id LIKE '{{%'").Scan(&named); err != nil || named != 0 {
		t.Errorf("%d chats are called by a placeholder: %v", named, err)
	}
	s.Gate.Leave <- struct{}{}
	asked := s.complete(t, call{body: said("@call gate {}\n@say the end"), header: chat})
	if got := s.complete(t, call{body: said(context + typed(t, *asked.Message.Content, "allow")), header: chat}); *got.Message.Content != "the end" {
		t.Errorf("%q", *got.Message.Content)
	}
}

func TestWordsAnswerAnApproval(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	for _, word := range []string{"allow", "deny"} {
		say := func(text string) call {
			return call{path: completions, body: said(text, `"stream":true`), header: []string{"X-Session-Id", word}}
		}
		text, finish, _ := content(t, s.stream(t, say("@text 1 delta\n@call gate {}\n@say the end")))
		if !strings.Contains(text, "**Approval needed:**") || finish != "stop" {
			t.Fatalf("%q %q", text, finish)
		}
		if r := s.get(t, say("something else")); r.status != 409 || r.code != "TURN_IN_PROGRESS" || !strings.Contains(r.text, "`allow`") || r.header.Get("X-Should-Retry") != "false" {
			t.Errorf("something else: %d %s", r.status, r.text)
		}
		if word == "allow" {
			s.Gate.Leave <- struct{}{}
		}
		if text, finish, _ := content(t, s.stream(t, say(typed(t, text, word)))); text != "the end" || finish != "stop" {
			t.Errorf("%s: %q %q", word, text, finish)
		}
		if text, _, _ := content(t, s.stream(t, say("count to 2"))); text != "1 2" {
			t.Errorf("afterwards: %q", text)
		}
	}
	if len(s.Gate.Entered) != 1 {
		t.Errorf("the tool ran %d times", len(s.Gate.Entered))
	}
}

func TestWordsSteerATurn(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	say := func(text string) call {
		return call{path: completions, body: said(text, `"stream":true`, `"user":"u"`)}
	}
	left := s.do(t, say(held))
	s.Gate.Await(t)
	left.Body.Close() // the turn goes on
	on := s.do(t, say("continue"))
	s.Gate.Leave <- struct{}{} // now that somebody reads on, it may end
	list, _ := frames(t, on)
	if text, _, _ := content(t, list); strings.Count(text, "0.") != 2 {
		t.Errorf("continue: %q", text)
	}
	reader := s.do(t, say(held))
	s.Gate.Await(t)
	again := s.do(t, say(held)) // the very same request: the same turn
	if again.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("the same request started something else")
	}
	if text, finish, _ := content(t, s.stream(t, say("cancel"))); text != "The turn was canceled." || finish != "stop" {
		t.Errorf("cancel: %q %q", text, finish)
	}
	for _, res := range []struct{ name string }{{"reader"}, {"again"}} {
		r := reader
		if res.name == "again" {
			r = again
		}
		list, ok := frames(t, r)
		if !ok || !strings.Contains(list[len(list)-2], `"code":"canceled"`) {
			t.Errorf("%s: %v", res.name, list)
		}
	}
	if text, _, _ := content(t, s.stream(t, say("cancel"))); text != "The turn was canceled." {
		t.Errorf("cancel once more: %q", text)
	}
	s.stream(t, say("count to 2"))
	if text, _, _ := content(t, s.stream(t, say("cancel"))); text == "The turn was canceled." {
		t.Errorf("cancel without a turn is a message: %q", text)
	}
}

// A secret never travels through a completion: the answer is a link.
func TestSecretsAreALink(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	s.declare(t, "API_TOKEN")
	say := func(text, key string) call { return call{path: completions, body: said(text, `"user":"u"`), key: key} }
	ask := "@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"to call the API\"}\n@say the end"
	if text := message(t, s.get(t, say(ask, ""))); !strings.Contains(text, "/secret .") || !strings.Contains(text, "API_TOKEN") {
		t.Fatalf("%q", text)
	}
	chat := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	if text := message(t, s.get(t, say("continue", chat))); strings.Contains(text, "`deny") || !strings.Contains(text, "scope secret") || !strings.Contains(text, "`cancel`") {
		t.Errorf("a key that may not deny it is told %q", text)
	}
	deny := typed(t, message(t, s.get(t, say("continue", ""))), "deny")
	if r := s.get(t, say(deny, chat)); r.status != 403 || r.code != "INSUFFICIENT_SCOPE" {
		t.Errorf("without the scope: %d %s", r.status, r.text)
	}
	if text := message(t, s.get(t, say(deny, ""))); text != "the end" {
		t.Errorf("%q", text)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	const document = "---\nname: weekly-report\ndescription: Writes the report.\ninterface:\n  inputs:\n    week:\n      type: string\n      required: true\n---\ncount to 3\n"
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID, skill.Upload{Document: document}); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"/openai/v1", "/v1"} {
		r := s.get(t, call{path: base + "/models"})
		if r.status != 200 || r.body["object"] != "list" || !strings.Contains(r.text, `"id":"demo","object":"model"`) || !strings.Contains(r.text, `"id":"demo/weekly-report"`) {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	for id, want := range map[string]int{"demo": 200, "demo/weekly-report": 200, "demo%2Fweekly-report": 200, "demo/none": 404, "another": 404} {
		if r := s.get(t, call{path: "/openai/v1/models/" + id}); r.status != want {
			t.Errorf("%s: %d %s", id, r.status, r.text)
		}
	}
	for _, text := range []string{"week 7", `{"week":"7"}`} {
		if r := s.get(t, call{path: completions, body: strings.Replace(said(text), "demo", "demo/weekly-report", 1)}); r.status != 200 {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: completions, body: strings.Replace(said(`{"month":"7"}`), "demo", "demo/weekly-report", 1)}); r.code != "INVALID_SKILL_INPUT" {
		t.Errorf("%d %s", r.status, r.text)
	}
}

// A word for a question that somebody else has answered says so, or goes on where it agrees.
func TestWordsComeSecond(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(text string) call { return call{path: completions, body: said(text, `"user":"u"`)} }
	asked := s.get(t, say("@call gate {}\n@say the end"))
	var id uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "SELECT id FROM approvals").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: id, Outcome: event.Allowed}); err != nil {
		t.Fatal(err)
	}
	s.Gate.Await(t)
	res := s.do(t, call{path: completions, body: said(typed(t, asked.text, "allow"), `"user":"u"`, `"stream":true`)})
	s.Gate.Leave <- struct{}{}
	list, _ := frames(t, res)
	if text, _, _ := content(t, list); text != "the end" {
		t.Errorf("allow: %q", text)
	}
	if text := message(t, s.get(t, say(typed(t, asked.text, "deny")))); text != "This was allowed before, and the first answer stands.\n\nthe end" {
		t.Errorf("deny: %q", text)
	}
}
