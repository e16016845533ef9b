package openai_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/turn"
)

// content joins the pieces of a streamed completion.
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

func TestCompletions(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	list := s.Stream(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 5", `"stream":true`,
		`"stream_options":{"include_usage":true}`)})
	text, finish, tokens := content(t, list)
	if text != "1 2 3 4 5" || finish != "stop" || tokens == 0 || list[len(list)-1] != "[DONE]" || len(list) < 7 {
		t.Errorf("%q %q %v in %d frames", text, finish, tokens, len(list))
	}
	if !strings.Contains(list[0], `"usage":null`) {
		t.Errorf("a chunk without usage: %s", list[0])
	}
	if _, _, tokens := content(t, s.Stream(t, apitest.Call{Path: "/v1/chat/completions", Body: apitest.Completion("count to 5",
		`"stream":true`)})); tokens != 0 {
		t.Errorf("usage that was not requested: %v", tokens)
	}
	r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 5")})
	if apitest.CompletionText(t, r) != "1 2 3 4 5" || !strings.Contains(r.Text, `"finish_reason":"stop"`) ||
		!strings.Contains(r.Text, `"total_tokens":`) {
		t.Errorf("%s", r.Text)
	}
	parts := `{"model":"demo","temperature":0.5,"tools":[],"messages":[{"role":"system","content":"be brief"},{"role":"user",` +
		`"content":"x"},{"role":"assistant","content":"y"},` +
		`{"role":"user","content":[{"type":"text","text":"count"},{"type":"text","text":"to 3"}]}]}`
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: strings.Replace(parts, "count\"},{\"type\":\"text\",\"text\":\"to 3",
		"count to 3", 1)}); apitest.CompletionText(t, r) != "1 2 3" ||
		r.Header.Get("X-Parley-Ignored") != "" {
		t.Errorf("%s %v", r.Text, r.Header)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 2", `"store":true`,
		`"metadata":{"a":"b"}`, `"conversation":"x"`, `"safety_identifier":"s"`)}); r.Header.Get(
		"X-Parley-Ignored") != "conversation, safety_identifier" {
		t.Errorf("ignored: %v", r.Header)
	}
	for _, choice := range []string{`"auto"`, `"none"`, `{"type":"allowed_tools","mode":"auto","tools":[]}`,
		`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`} {
		if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 2", `"tools":[{}]`,
			`"tool_choice":`+choice)}); r.Status != 200 || r.Header.Get("X-Parley-Ignored") != "tools/0" {
			t.Errorf("%s: %d %v", choice, r.Status, r.Header)
		}
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 2", `"store":false`)}); r.Header.Get(
		"X-Parley-Ignored") != "store" {
		t.Errorf("ignored: %v", r.Header)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@structured {\"n\":1}",
		`"response_format":{"type":"json_object"}`)}); apitest.CompletionText(t, r) != `{"n":1}` {
		t.Errorf("%s", r.Text)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@structured {\"n\":1}",
		`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object",`+
			`"properties":{"n":{"type":"integer"}}}}}`)}); apitest.CompletionText(t, r) != `{"n":1}` {
		t.Errorf("%s", r.Text)
	}
}

func TestCompletionsThatFail(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	s.Gate.Leave <- struct{}{}
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no JSON":     {"{", 400, "INVALID_JSON"},
		"no messages": {`{"model":"demo"}`, 400, "INVALID_REQUEST"},
		"no user":     {`{"model":"demo","messages":[{"role":"system","content":"x"}]}`, 400, "INVALID_REQUEST"},
		"no text":     {apitest.Completion(" "), 400, "INVALID_REQUEST"},
		"an image": {`{"model":"demo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]}`,
			400, "INVALID_REQUEST"},
		"two choices":      {apitest.Completion("x", `"n":2`), 400, "INVALID_REQUEST"},
		"a number as user": {apitest.Completion("x", `"user":7`), 400, "INVALID_REQUEST"},
		"another model":    {strings.Replace(apitest.Completion("x"), "demo", "gpt-4o", 1), 404, "WORKSPACE_NOT_FOUND"},
		"no such skill":    {strings.Replace(apitest.Completion("x"), "demo", "demo/nothing", 1), 404, "WORKSPACE_NOT_FOUND"},
		"no such session":  {apitest.Completion("x", `"session_id":"0197a0d2-0000-7000-8000-000000000001"`), 404, "SESSION_NOT_FOUND"},
		"a bad schema": {apitest.Completion("x",
			`"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"nonsense"}}}`), 400, "INVALID_RESPONSE_SCHEMA"},
		"too large": {apitest.Completion(strings.Repeat("x", 8<<20)), 413, "PAYLOAD_TOO_LARGE"},
		"a tool's result": {
			`{"model":"demo","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[]},` +
				`{"role":"tool","content":"7"},{"role":"system","content":"x"}]}`, 400, "INVALID_REQUEST"},
		"no format":      {apitest.Completion("x", `"response_format":{}`), 400, "INVALID_REQUEST"},
		"another format": {apitest.Completion("x", `"response_format":{"type":"json_shema"}`), 400, "INVALID_REQUEST"},
		"a forced call":  {apitest.Completion("x", `"tool_choice":"required"`), 400, "INVALID_REQUEST"},
		"one of these": {apitest.Completion("x", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]}`), 400,
			"INVALID_REQUEST"},
		"of these, deeper": {apitest.Completion("x",
			`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}`), 400, "INVALID_REQUEST"},
		"a function":       {apitest.Completion("x", `"function_call":{"name":"f"}`), 400, "INVALID_REQUEST"},
		"no schema":        {apitest.Completion("x", `"response_format":{"type":"json_schema"}`), 400, "INVALID_REQUEST"},
		"a busy model":     {apitest.Completion("@error model_overloaded"), 503, "model_overloaded"},
		"a failed model":   {apitest.Completion("@error model_error"), 422, "model_error"},
		"no fitting JSON":  {apitest.Completion("@repeat 9\n@structured {\"n\":\"x\"}", inASchema), 422, "structured_output_invalid"},
		"busy, after work": {apitest.Completion("@call touch {}\n@error model_overloaded"), 422, "model_overloaded"},
		"too many turns":   {apitest.Completion("@call gate {}\n@call gate {}", `"limits":{"max_turns":1}`), 422, "max_turns_exceeded"},
	} {
		r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: c.body})
		e, _ := r.Body["error"].(map[string]any)
		if _, param := e["param"]; r.Status != c.status || r.Code != c.code || e["message"] == "" || e["type"] == "" || !param {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
		if strings.Contains(r.Text, "response_schema") {
			t.Errorf("%s: the error names response_schema, which the client did not send: %s", name, r.Text)
		}
		if r.Code == "WORKSPACE_NOT_FOUND" && (e["param"] != "model" || !strings.HasPrefix(e["message"].(string), "Unknown model \"")) {
			t.Errorf("%s: the error names %v, which the client did not send", name, e["param"])
		}
		if again := r.Header.Get("Retry-After") != ""; again != (c.status == 503) ||
			!again && c.status == 422 && r.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %v", name, r.Header)
		}
	}
	if r := s.Get(t, apitest.Call{Path: "/openai/v1/embeddings", Body: `{"model":"demo","input":"x"}`}); r.Status != 404 ||
		r.Code != "NOT_FOUND" ||
		!strings.Contains(r.Text, `{"error":{"type":"not_found_error"`) || !strings.Contains(r.Text, "Send embeddings to their provider.") {
		t.Errorf("embeddings: %d %s", r.Status, r.Text)
	}
	list := s.Stream(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@error model_error", `"stream":true`)})
	if n := len(list); !strings.Contains(list[n-2], `"error":{"message":`) || !strings.Contains(list[n-2], `"code":"model_error"`) ||
		list[n-1] != "[DONE]" {
		t.Errorf("a failed turn: %v", list)
	}
}

// TestCompletionsSayWhatIsWrong checks that an error names the client's fields.
func TestCompletionsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		apitest.Call
		param, message string
	}{
		"user":        {apitest.Call{Body: apitest.Completion("x", `"user":7`)}, "user", "user must be a string."},
		"a long user": {apitest.Call{Body: apitest.Completion("x", `"user":"`+long+`"`)}, "user", "user has more than 255 bytes."},
		"a long header": {apitest.Call{Body: apitest.Completion("x"), Header: []string{"X-Session-Id", long}}, "X-Session-Id",
			"X-Session-Id has more than 255 bytes."},
		"messages": {apitest.Call{Body: `{"model":"demo","messages":{}}`}, "messages",
			"messages must be an array of messages, each with a role, and hold at least one."},
		"a long message": {apitest.Call{Body: `{"model":"demo","messages":[{"role":"system","content":""},{"role":"user","content":"` +
			strings.Repeat("x", 200_001) + `"}]}`}, "messages/1/content", "messages/1/content has more than 200000 characters."},
		"content": {apitest.Call{Body: `{"model":"demo","messages":[{"role":"user","content":7}]}`}, "messages/0/content",
			"The content of a message is a text, or parts."},
		"a bad schema": {apitest.Call{Body: apitest.Completion("x",
			`"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"x"}}}`)}, "response_format/json_schema/schema",
			"response_format/json_schema/schema at /type: "},
		"no schema": {apitest.Call{Body: apitest.Completion("x", `"response_format":{"type":"json_schema"}`)},
			"response_format/json_schema/schema", "response_format/json_schema/schema is missing."},
		"two things": {apitest.Call{Body: apitest.Completion("x", `"stream":7`, `"n":2`)}, "stream",
			"stream must be a boolean. n must be 1."},
		"tool_choice": {apitest.Call{Body: apitest.Completion("x", `"tool_choice":{"type":"function","function":{"name":"f"}}`)},
			"tool_choice", "tool_choice requires a call of a function that tools does not define."},
		"no tool_choice": {apitest.Call{Body: apitest.Completion("x", `"tool_choice":5`)}, "tool_choice",
			"tool_choice must be a string or an object."},
		"a format": {apitest.Call{Body: apitest.Completion("x", `"response_format":{"type":"json_shema"}`)}, "response_format/type",
			"response_format/type must be one of text, json_object, json_schema."},
		"secret_input": {apitest.Call{Body: apitest.Completion("x", `"secret_input":{}`)}, "secret_input", "secret_input must be an array."},
		"include_usage": {apitest.Call{Body: apitest.Completion("x", `"stream_options":{"include_usage":1}`)},
			"stream_options/include_usage", "stream_options/include_usage must be a boolean."},
	} {
		c.Path = apitest.CompletionsPath
		r := s.Get(t, c.Call)
		e, _ := r.Body["error"].(map[string]any)
		if r.Status != 400 || e["param"] != c.param || !strings.HasPrefix(e["message"].(string), c.message) {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
}

// TestCompletionsContinueAChat checks that the client's name for a chat selects the session;
// without a name, every call is a chat of its own.
func TestCompletionsContinueAChat(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	session := func(c apitest.Call) any {
		c.Path = apitest.CompletionsPath
		r := s.Get(t, c)
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Text)
		}
		return r.Body["session_id"]
	}
	named := []apitest.Call{
		{Body: apitest.Completion("count to 2", `"user":"chat-1"`)},
		{Body: apitest.Completion("count to 3", `"user":"anna"`), Header: []string{"X-OpenWebUI-Chat-Id", "chat-1"}},
		{Body: apitest.Completion("count to 4"), Header: []string{"X-Session-Id", "chat-1"}},
		{Body: apitest.Completion("count to 5"), Header: []string{"X-Session-Id", "other", "X-OpenWebUI-Chat-Id", "chat-1"}},
	}
	first := session(named[0])
	for _, c := range append(named, apitest.Call{Body: apitest.Completion("count to 6", `"session_id":`+apitest.Quote(first.(string)))}) {
		if got := session(c); got != first {
			t.Errorf("%v: session %v, want %v", c, got, first)
		}
	}
	if a, b := session(apitest.Call{Body: apitest.Completion("count to 2")}),
		session(apitest.Call{Body: apitest.Completion("count to 2")}); a == b || a == first {
		t.Errorf("sessions %v, %v and %v", first, a, b)
	}
}

// TestOpenWebUI checks that Open WebUI's own prompts are rejected as messages. A message with
// documents is accepted, and so is a decision word after documents.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	const title, context = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.",
		"### Task:\nRespond to the user query using the provided context.\n\n<context>\n<source id=\"1\">x</source>\n</context>\n\n"
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
		if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(c.text), Header: c.header}); r.Status != c.status {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	var named int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM sessions WHERE caller_id LIKE '{{%'").Scan(&named); err != nil || named != 0 {
		t.Errorf("%d chats are named by a placeholder: %v", named, err)
	}
	s.Gate.Leave <- struct{}{}
	asked := s.complete(t, apitest.Call{Body: apitest.Completion("@call gate {}\n@say the end"), Header: chat})
	if got := s.complete(t, apitest.Call{Body: apitest.Completion(context + apitest.CodeReply(t, *asked.Message.Content, "allow")),
		Header: chat}); *got.Message.Content != "the end" {
		t.Errorf("%q", *got.Message.Content)
	}
}

func TestWordsAnswerAnApproval(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	for _, word := range []string{"allow", "deny"} {
		say := func(text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"stream":true`),
				Header: []string{"X-Session-Id", word}}
		}
		text, finish, _ := content(t, s.Stream(t, say("@text 1 delta\n@call gate {}\n@say the end")))
		if !strings.Contains(text, "**Approval needed:**") || finish != "stop" {
			t.Fatalf("%q %q", text, finish)
		}
		if r := s.Get(t, say("something else")); r.Status != 409 || r.Code != "TURN_IN_PROGRESS" || !strings.Contains(r.Text, "`allow`") ||
			r.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("something else: %d %s", r.Status, r.Text)
		}
		if word == "allow" {
			s.Gate.Leave <- struct{}{}
		}
		if text, finish, _ := content(t, s.Stream(t, say(apitest.CodeReply(t, text, word)))); text != "the end" || finish != "stop" {
			t.Errorf("%s: %q %q", word, text, finish)
		}
		if text, _, _ := content(t, s.Stream(t, say("count to 2"))); text != "1 2" {
			t.Errorf("afterwards: %q", text)
		}
	}
	if len(s.Gate.Entered) != 1 {
		t.Errorf("the tool ran %d times", len(s.Gate.Entered))
	}
}

func TestWordsSteerATurn(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	say := func(text string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"stream":true`, `"user":"u"`)}
	}
	left := s.Do(t, say(apitest.HeldCommand))
	s.Gate.Await(t)
	left.Body.Close() // the turn continues
	on := s.Do(t, say("continue"))
	s.Gate.Leave <- struct{}{} // a reader is attached, so the turn may end
	list, _ := apitest.Frames(t, on)
	if text, _, _ := content(t, list); strings.Count(text, "0.") != 2 {
		t.Errorf("continue: %q", text)
	}
	reader := s.Do(t, say(apitest.HeldCommand))
	s.Gate.Await(t)
	again := s.Do(t, say(apitest.HeldCommand)) // an identical request: the same turn
	if again.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("the same request started another turn")
	}
	if text, finish, _ := content(t, s.Stream(t, say("cancel"))); text != "The turn was canceled." || finish != "stop" {
		t.Errorf("cancel: %q %q", text, finish)
	}
	for _, res := range []struct{ name string }{{"reader"}, {"again"}} {
		r := reader
		if res.name == "again" {
			r = again
		}
		list, ok := apitest.Frames(t, r)
		if !ok || !strings.Contains(list[len(list)-2], `"code":"canceled"`) {
			t.Errorf("%s: %v", res.name, list)
		}
	}
	if text, _, _ := content(t, s.Stream(t, say("cancel"))); text != "The turn was canceled." {
		t.Errorf("cancel once more: %q", text)
	}
	s.Stream(t, say("count to 2"))
	if text, _, _ := content(t, s.Stream(t, say("cancel"))); text == "The turn was canceled." {
		t.Errorf("cancel without a turn is a message: %q", text)
	}
}

// TestSecretsAreALink checks that a request for a secret is a link: no secret passes through a
// completion.
func TestSecretsAreALink(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Declare(t, "API_TOKEN")
	say := func(text, key string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"u"`), Key: key}
	}
	ask := "@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"to call the API\"}\n@say the end"
	if text := apitest.CompletionText(t, s.Get(t, say(ask, ""))); !strings.Contains(text, "/secret .") ||
		!strings.Contains(text, "API_TOKEN") {
		t.Fatalf("%q", text)
	}
	chat := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	if text := apitest.CompletionText(t, s.Get(t, say("continue", chat))); strings.Contains(text, "`deny") ||
		!strings.Contains(text, "scope secret") || !strings.Contains(text, "`cancel`") {
		t.Errorf("a key that may not deny it receives %q", text)
	}
	deny := apitest.CodeReply(t, apitest.CompletionText(t, s.Get(t, say("continue", ""))), "deny")
	if r := s.Get(t, say(deny, chat)); r.Status != 403 || r.Code != "INSUFFICIENT_SCOPE" {
		t.Errorf("without the scope: %d %s", r.Status, r.Text)
	}
	if text := apitest.CompletionText(t, s.Get(t, say(deny, ""))); text != "the end" {
		t.Errorf("%q", text)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	const document = "---\nname: weekly-report\ndescription: Writes the report.\ninterface:\n  inputs:\n    week:\n      type: string\n " +
		"     required: true\n---\ncount to 3\n"
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID, skill.Upload{Document: document}); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"/openai/v1", "/v1"} {
		r := s.Get(t, apitest.Call{Path: base + "/models"})
		if r.Status != 200 || r.Body["object"] != "list" || !strings.Contains(r.Text, `"id":"demo","object":"model"`) ||
			!strings.Contains(r.Text, `"id":"demo/weekly-report"`) {
			t.Errorf("%d %s", r.Status, r.Text)
		}
	}
	for id, want := range map[string]int{"demo": 200, "demo/weekly-report": 200, "demo%2Fweekly-report": 200, "demo/none": 404,
		"another": 404} {
		if r := s.Get(t, apitest.Call{Path: "/openai/v1/models/" + id}); r.Status != want {
			t.Errorf("%s: %d %s", id, r.Status, r.Text)
		}
	}
	for _, text := range []string{"week 7", `{"week":"7"}`} {
		if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: strings.Replace(apitest.Completion(text), "demo",
			"demo/weekly-report", 1)}); r.Status != 200 {
			t.Errorf("%s: %d %s", text, r.Status, r.Text)
		}
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: strings.Replace(apitest.Completion(`{"month":"7"}`), "demo",
		"demo/weekly-report", 1)}); r.Code != "INVALID_SKILL_INPUT" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
}

// TestWordsComeSecond checks a decision word for a question that was already answered: the response
// reports that, or continues if the decisions agree.
func TestWordsComeSecond(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	say := func(text string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"u"`)}
	}
	asked := s.Get(t, say("@call gate {}\n@say the end"))
	var id uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "SELECT id FROM approvals").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: id, Outcome: event.Allowed}); err != nil {
		t.Fatal(err)
	}
	s.Gate.Await(t)
	res := s.Do(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.CodeReply(t, asked.Text, "allow"),
		`"user":"u"`, `"stream":true`)})
	s.Gate.Leave <- struct{}{}
	list, _ := apitest.Frames(t, res)
	if text, _, _ := content(t, list); text != "the end" {
		t.Errorf("allow: %q", text)
	}
	if text := apitest.CompletionText(t, s.Get(t, say(apitest.CodeReply(t, asked.Text,
		"deny")))); text != "This was allowed before, and the first answer stands.\n\nthe end" {
		t.Errorf("deny: %q", text)
	}
}
