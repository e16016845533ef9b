package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/turn"
)

// asksInJSON is a turn that asks for an approval and then answers in a schema.
const (
	asksInJSON = "@text 2 deltas\n@call gate {}\n@structured {\"n\":1}"
	aNumber    = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	inASchema  = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + aNumber + `}}`
)

// choice is the message of a completion in one piece.
type choice struct {
	Message struct{ Content, Refusal *string }
	Finish  string `json:"finish_reason"`
}

func (s *service) complete(t *testing.T, c call) choice {
	t.Helper()
	c.path = completions
	r := s.get(t, c)
	var whole struct{ Choices []choice }
	if err := json.Unmarshal([]byte(r.text), &whole); err != nil || r.status != 200 || len(whole.Choices) != 1 {
		t.Fatalf("%d %s: %v", r.status, r.text, err)
	}
	return whole.Choices[0]
}

// Who asks for the rest of a turn that waits is asked again, in the same words, however the
// first question was told.
func TestContinueAsksAgain(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(text string, more ...string) call {
		return call{path: completions, body: said(text, append(more, `"user":"u"`)...)}
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
	if text, finish, _ := content(t, s.stream(t, say("continue", `"stream":true`))); text != question || finish != "stop" {
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
	on := s.do(t, say("continue", `"stream":true`))
	s.Gate.Leave <- struct{}{}
	list, _ := frames(t, on)
	if text, _, _ := content(t, list); text != "the end" {
		t.Errorf("after the answer: %q", text)
	}
}

// A conversation that ends with the assistant's own message asks for the rest of its turn. What
// the user said before is not done twice.
func TestNothingIsAnsweredTwice(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	const conversation = `"messages":[{"role":"user","content":"@call gate {}\n@say the end"},{"role":"assistant","content":"I"},{"role":"system","content":"x"}]}`
	first := s.complete(t, call{body: said("@call gate {}\n@say the end", `"user":"u"`)})
	if again := s.complete(t, call{body: `{"model":"demo","user":"u",` + conversation}); *again.Message.Content != *first.Message.Content {
		t.Errorf("%q, want %q", *again.Message.Content, *first.Message.Content)
	}
	s.complete(t, call{body: said(typed(t, *first.Message.Content, "deny"), `"user":"u"`)})
	if told := s.complete(t, call{body: `{"model":"demo","user":"u",` + conversation}); *told.Message.Content != "the end" {
		t.Errorf("%q", *told.Message.Content)
	}
	s.complete(t, call{body: said("count to 2", `"user":"u"`)})
	if r := s.get(t, call{path: completions, body: `{"model":"demo","user":"u",` + conversation}); r.status != 400 || r.code != "INVALID_REQUEST" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if unnamed := s.complete(t, call{body: `{"model":"demo",` + conversation}); !strings.Contains(*unnamed.Message.Content, "Approval needed") {
		t.Errorf("%q", *unnamed.Message.Content)
	}
}

// Who waits for JSON gets JSON or a refusal, also where the request that reads on says nothing
// of a schema.
func TestQuestionsAreNoJSON(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	for _, word := range []string{"allow", "deny"} {
		say := func(text string, more ...string) call {
			return call{body: said(text, append(more, `"user":"`+word+`"`)...)}
		}
		var asked choice
		for _, c := range []call{say(asksInJSON, inASchema), say("continue"), say(word)} {
			asked = s.complete(t, c)
			if asked.Message.Content != nil || asked.Message.Refusal == nil || !strings.HasPrefix(*asked.Message.Refusal, "**Approval needed:**") || asked.Finish != "stop" {
				t.Errorf("%s: %+v", c.body, asked)
			}
		}
		if told := s.complete(t, say(typed(t, *asked.Message.Refusal, word))); told.Message.Refusal != nil || *told.Message.Content != `{"n":1}` {
			t.Errorf("%s: %+v", word, told)
		}
	}
	streamed := call{path: completions, body: said(asksInJSON, inASchema, `"user":"s"`, `"stream":true`)}
	if list := strings.Join(s.stream(t, streamed), "\n"); !strings.Contains(list, `"delta":{"refusal":"**Approval needed`) {
		t.Errorf("%s", list)
	}
	canceled := s.complete(t, call{body: said("cancel", `"user":"s"`)})
	if canceled.Message.Content != nil || *canceled.Message.Refusal != "The turn was canceled." {
		t.Errorf("cancel: %+v", canceled)
	}
}

// Every response has an id of its own, and each can be followed.
func TestResponsesToWords(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	s.Gate.Leave <- struct{}{}
	respond := func(body string) (id, status, part string) {
		t.Helper()
		r := s.get(t, call{path: responses, body: `{"model":"demo",` + body + `}`})
		var whole struct {
			ID, Status string
			Output     []struct {
				Content []struct{ Type, Text, Refusal string }
			}
		}
		if err := json.Unmarshal([]byte(r.text), &whole); err != nil || r.status != 200 || len(whole.Output) != 1 || len(whole.Output[0].Content) != 1 {
			t.Fatalf("%s: %d %s: %v", body, r.status, r.text, err)
		}
		p := whole.Output[0].Content[0]
		return whole.ID, whole.Status, p.Type + " " + p.Text + p.Refusal
	}
	script := quote(asksInJSON)
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
	allowed := follow(again, typed(t, part, "allow"), `output_text {"n":1}`)
	follow(allowed, "count to 2", "output_text 1 2")
	list := s.stream(t, call{path: responses, body: `{"model":"demo","stream":true,"conversation":"c","input":` + script + `,"text":{"format":{"type":"json_object"}}}`})
	if got := types(t, list); !strings.Contains(got, "response.content_part.added response.refusal.delta response.refusal.done response.content_part.done") {
		t.Errorf("%s", got)
	}
	if _, _, part := respond(`"input":"cancel","conversation":{"id":"c"}`); part != "refusal The turn was canceled." {
		t.Errorf("%s", part)
	}
}

// An answer that the model could not finish says so.
func TestAnswersThatAreCut(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	if got := s.complete(t, call{body: said("@say Half\n@length")}); got.Finish != "length" || *got.Message.Content != "Half" {
		t.Errorf("%+v", got)
	}
	if _, finish, _ := content(t, s.stream(t, call{path: completions, body: said("@say Half\n@length", `"stream":true`)})); finish != "length" {
		t.Errorf("%q", finish)
	}
	r := s.get(t, call{path: responses, body: `{"model":"demo","input":"@say Half\n@length"}`})
	if r.body["status"] != "incomplete" || !strings.Contains(r.text, `"incomplete_details":{"reason":"max_output_tokens"}`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	if got := types(t, s.stream(t, call{path: responses, body: `{"model":"demo","stream":true,"input":"@say Half\n@length"}`})); !strings.HasSuffix(got, " response.incomplete") {
		t.Errorf("%s", got)
	}
}

// Every dialect tells of files that do not come with their message.
func TestRejectedAttachmentsAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	const id = "0197a0d2-0000-7000-8000-00000000000f"
	const file = `"attachments":[{"file_id":"` + id + `"}]`
	if got := s.complete(t, call{body: said("@say So.", file)}); *got.Message.Content != "The agent does not have the file "+id+": There is no such file.\n\nSo." {
		t.Errorf("%q", *got.Message.Content)
	}
	const data = `[{"file_id":"` + id + `","filename":"","code":"FILE_NOT_FOUND","reason":"There is no such file."}]`
	ui := s.stream(t, call{path: chats, body: `{"id":"c",` + file + `,"messages":[{"role":"user","parts":[{"type":"text","text":"@say So."}]}]}`})
	if !strings.Contains(strings.Join(ui, "\n"), `{"type":"data-rejected-attachments","id":"rejected-attachments","data":`+data+`}`) {
		t.Errorf("%v", ui)
	}
	agui := s.stream(t, call{path: runs, body: `{"threadId":"t","runId":"r","forwardedProps":{` + file + `},"messages":[{"role":"user","content":"@say So."}]}`})
	if !strings.Contains(strings.Join(agui, "\n"), `{"type":"CUSTOM","name":"rejected_attachments","value":`+data+`}`) {
		t.Errorf("%v", agui)
	}
	keyed := call{path: completions, body: said("@say So.", file), header: []string{"Idempotency-Key", "k"}}
	if a, b := message(t, s.get(t, keyed)), message(t, s.get(t, keyed)); a != b || !strings.Contains(a, id) {
		t.Errorf("%q and again %q", a, b)
	}
}
