package openai_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/turn"
)

// asksInJSON is a turn that asks for an approval and then answers in a schema.
const (
	asksInJSON = "@text 2 deltas\n@call gate {}\n@structured {\"n\":1}"
	aNumber    = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	inASchema  = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + aNumber + `}}`
)

// choice is a choice of a completion that is not streamed.
type choice struct {
	Message struct{ Content, Refusal *string }
	Finish  string `json:"finish_reason"`
}

func (s *service) complete(t *testing.T, c apitest.Call) choice {
	t.Helper()
	c.Path = apitest.CompletionsPath
	r := s.Get(t, c)
	var whole struct{ Choices []choice }
	if err := json.Unmarshal([]byte(r.Text), &whole); err != nil || r.Status != 200 || len(whole.Choices) != 1 {
		t.Fatalf("%d %s: %v", r.Status, r.Text, err)
	}
	return whole.Choices[0]
}

// TestContinueAsksAgain checks that "continue" on a turn that waits returns its question again,
// with the same text, whether the first one was streamed or not.
func TestContinueAsksAgain(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	say := func(text string, more ...string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, append(more, `"user":"u"`)...)}
	}
	first := s.complete(t, say("@text 1 delta\n@call gate {}\n@say the end"))
	_, question, ok := strings.Cut(*first.Message.Content, "\n\n")
	if !ok {
		t.Fatalf("%q", *first.Message.Content)
	}
	for range 2 {
		if again := s.complete(t, say("continue")); *again.Message.Content != question || again.Finish != "stop" {
			t.Errorf("%q, want %q", *again.Message.Content, question)
		}
	}
	if text, finish, _ := content(t, s.Stream(t, say("continue", `"stream":true`))); text != question || finish != "stop" {
		t.Errorf("in a stream: %q %q", text, finish)
	}
	var id uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "SELECT id FROM approvals").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: id, Outcome: event.Allowed}); err != nil {
		t.Fatal(err)
	}
	s.Gate.Await(t)
	on := s.Do(t, say("continue", `"stream":true`))
	s.Gate.Leave <- struct{}{}
	list, _ := apitest.Frames(t, on)
	if text, _, _ := content(t, list); text != "the end" {
		t.Errorf("after the answer: %q", text)
	}
}

// TestNothingIsAnsweredTwice checks that a conversation that ends with an assistant message
// continues that turn and does not repeat the user's message.
func TestNothingIsAnsweredTwice(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	const conversation = `"messages":[{"role":"user","content":"@call gate {}\n@say the end"},{"role":"assistant","content":"I"},` +
		`{"role":"system","content":"x"}]}`
	first := s.complete(t, apitest.Call{Body: apitest.Completion("@call gate {}\n@say the end", `"user":"u"`)})
	if again := s.complete(t, apitest.Call{Body: `{"model":"demo","user":"u",` +
		conversation}); *again.Message.Content != *first.Message.Content {
		t.Errorf("%q, want %q", *again.Message.Content, *first.Message.Content)
	}
	s.complete(t, apitest.Call{Body: apitest.Completion(apitest.CodeReply(t, *first.Message.Content, "deny"), `"user":"u"`)})
	if told := s.complete(t, apitest.Call{Body: `{"model":"demo","user":"u",` + conversation}); *told.Message.Content != "the end" {
		t.Errorf("%q", *told.Message.Content)
	}
	s.complete(t, apitest.Call{Body: apitest.Completion("count to 2", `"user":"u"`)})
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: `{"model":"demo","user":"u",` + conversation}); r.Status != 400 ||
		r.Code != "INVALID_REQUEST" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if unnamed := s.complete(t, apitest.Call{Body: `{"model":"demo",` + conversation}); !strings.Contains(*unnamed.Message.Content,
		"Approval needed") {
		t.Errorf("%q", *unnamed.Message.Content)
	}
}

// TestQuestionsAreNoJSON checks that a client that requested JSON receives JSON or a refusal, even
// if the continuing request has no schema.
func TestQuestionsAreNoJSON(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	for _, word := range []string{"allow", "deny"} {
		say := func(text string, more ...string) apitest.Call {
			return apitest.Call{Body: apitest.Completion(text, append(more, `"user":"`+word+`"`)...)}
		}
		var asked choice
		for _, c := range []apitest.Call{say(asksInJSON, inASchema), say("continue"), say(word)} {
			asked = s.complete(t, c)
			if asked.Message.Content != nil || asked.Message.Refusal == nil || !strings.HasPrefix(*asked.Message.Refusal,
				"**Approval needed:**") || asked.Finish != "stop" {
				t.Errorf("%s: %+v", c.Body, asked)
			}
		}
		if told := s.complete(t, say(apitest.CodeReply(t, *asked.Message.Refusal, word))); told.Message.Refusal != nil ||
			*told.Message.Content != `{"n":1}` {
			t.Errorf("%s: %+v", word, told)
		}
	}
	streamed := apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(asksInJSON, inASchema, `"user":"s"`, `"stream":true`)}
	if list := strings.Join(s.Stream(t, streamed), "\n"); !strings.Contains(list, `"delta":{"refusal":"**Approval needed`) {
		t.Errorf("%s", list)
	}
	canceled := s.complete(t, apitest.Call{Body: apitest.Completion("cancel", `"user":"s"`)})
	if canceled.Message.Content != nil || *canceled.Message.Refusal != "The turn was canceled." {
		t.Errorf("cancel: %+v", canceled)
	}
}

// TestResponsesToWords checks that every response has an id of its own, which a later request can
// name.
func TestResponsesToWords(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Gate.Leave <- struct{}{}
	respond := func(body string) (id, status, part string) {
		t.Helper()
		r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo",` + body + `}`})
		var whole struct {
			ID, Status string
			Output     []struct {
				Content []struct{ Type, Text, Refusal string }
			}
		}
		if err := json.Unmarshal([]byte(r.Text), &whole); err != nil || r.Status != 200 || len(whole.Output) != 1 ||
			len(whole.Output[0].Content) != 1 {
			t.Fatalf("%s: %d %s: %v", body, r.Status, r.Text, err)
		}
		p := whole.Output[0].Content[0]
		return whole.ID, whole.Status, p.Type + " " + p.Text + p.Refusal
	}
	script := apitest.Quote(asksInJSON)
	first, status, part := respond(`"input":` + script + `,"text":{"format":{"type":"json_schema","name":"n","schema":` + aNumber + `}}`)
	if status != "completed" || !strings.HasPrefix(part, "refusal **Approval needed:**") {
		t.Errorf("%s %s", status, part)
	}
	seen := map[string]bool{first: true}
	follow := func(previous, input, want string) string {
		t.Helper()
		id, _, part := respond(`"input":"` + input + `","previous_response_id":"` + previous + `"`)
		if !strings.HasPrefix(part, want) || seen[id] || !strings.HasPrefix(id, "resp_") {
			t.Errorf("%s: %s in %s", input, part, id)
		}
		seen[id] = true
		return id
	}
	again := follow(first, "continue", "refusal **Approval needed:**")
	allowed := follow(again, apitest.CodeReply(t, part, "allow"), `output_text {"n":1}`)
	follow(allowed, "count to 2", "output_text 1 2")
	list := s.Stream(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","stream":true,"conversation":"c","input":` +
		script + `,"text":{"format":{"type":"json_object"}}}`})
	if got := apitest.FrameTypes(t, list); !strings.Contains(got,
		"response.content_part.added response.refusal.delta response.refusal.done response.content_part.done") {
		t.Errorf("%s", got)
	}
	if _, _, part := respond(`"input":"cancel","conversation":{"id":"c"}`); part != "refusal The turn was canceled." {
		t.Errorf("%s", part)
	}
}

// TestAnswersThatAreCut checks that an incomplete answer has the finish reason "length".
func TestAnswersThatAreCut(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	if got := s.complete(t, apitest.Call{Body: apitest.Completion("@say Half\n@length")}); got.Finish != "length" ||
		*got.Message.Content != "Half" {
		t.Errorf("%+v", got)
	}
	if _, finish, _ := content(t, s.Stream(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@say Half\n@length",
		`"stream":true`)})); finish != "length" {
		t.Errorf("%q", finish)
	}
	r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":"@say Half\n@length"}`})
	if r.Body["status"] != "incomplete" || !strings.Contains(r.Text, `"incomplete_details":{"reason":"max_output_tokens"}`) {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, apitest.Call{Path: apitest.ResponsesPath,
		Body: `{"model":"demo","stream":true,"input":"@say Half\n@length"}`})); !strings.HasSuffix(got, " response.incomplete") {
		t.Errorf("%s", got)
	}
}
