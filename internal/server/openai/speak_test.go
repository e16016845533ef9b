package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// asksTwice is a turn that asks for an approval, works, and asks for another.
const asksTwice = "@call gate {}\n@call gate {}\n@say the end"

// after is a conversation that continues after a message of the assistant.
func after(shown, text string, members ...string) string {
	body := strings.TrimSuffix(apitest.Completion(text, members...), "}")
	return strings.Replace(body, `"messages":[`, `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":`+
		apitest.Quote(shown)+`},`, 1) + "}"
}

// questions counts the questions of a service.
func (s *service) questions(t *testing.T) (allowed, asked, turns int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FILTER (WHERE status = 'allowed') FROM approvals), (SELECT count(*) `+
		`FROM approvals), (SELECT count(*) FROM turns)`).
		Scan(&allowed, &asked, &turns); err != nil {
		t.Fatal(err)
	}
	return allowed, asked, turns
}

// TestWordsDecideOneApproval checks that a repeated decision word decides nothing and starts no
// turn.
func TestWordsDecideOneApproval(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		chat string
		word func(first apitest.Reply, text string) apitest.Call
	}{
		"in a named chat": {`"user":"u"`, func(_ apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"u"`)}
		}},
		"with its conversation": {`"user":"u"`, func(r apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: after(shown(r), text, `"user":"u"`)}
		}},
		"in an unnamed chat": {`"n":1`, func(r apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: after(shown(r), text)}
		}},
		"without name and memory": {`"n":1`, func(_ apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text)}
		}},
		"behind something else": {`"user":"u"`, func(_ apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: after("A joke?", text, `"user":"u"`)}
		}},
		"in lower case, punctuated": {`"user":"u"`, func(_ apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(" **"+strings.ToLower(text)+"**. ", `"user":"u"`)}
		}},
		"with a hyphen and capitals": {`"user":"u"`, func(_ apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("ALLOW ("+text[6:9]+"-"+text[9:]+")", `"user":"u"`)}
		}},
		"with a key": {`"user":"u"`, func(_ apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"u"`),
				Header: []string{"Idempotency-Key", "k"}}
		}},
		"as a response": {`"user":"u"`, func(r apitest.Reply, text string) apitest.Call {
			return apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":` + apitest.Quote(text) +
				`,"previous_response_id":"resp_` + strings.TrimPrefix(r.Body["id"].(string), "chatcmpl-") + `"}`}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, apitest.ChatOptions{Window: time.Hour})
			first := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(asksTwice, way.chat)})
			text := apitest.CodeReply(t, first.Text, "allow")
			word := way.word(first, text)
			lost := make(chan struct{})
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					<-lost
					if r := s.Get(t, word); r.Status != 200 || !strings.Contains(r.Text, "Reply `allow ") || strings.Contains(r.Text, text) {
						t.Errorf("%d %s", r.Status, r.Text)
					}
				})
			}
			close(lost)
			s.Gate.Await(t)
			s.Gate.Leave <- struct{}{}
			wait.Until(t, "all goroutines", all.Wait)
			s.Gate.Leave <- struct{}{}
			second := s.Get(t, word)
			next := apitest.CodeReply(t, second.Text, "allow")
			if allowed, asked, turns := s.questions(t); allowed != 1 || asked != 2 || turns != 1 || next == text {
				t.Fatalf("%d of %d are allowed in %d turns", allowed, asked, turns)
			}
			for range 2 {
				if r := s.Get(t, way.word(first, next)); r.Status != 200 || !strings.Contains(r.Text, `"the end"`) {
					t.Errorf("%d %s", r.Status, r.Text)
				}
			}
			denied := apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(strings.Replace(next, "allow", "deny", 1), way.chat)}
			if text := apitest.CompletionText(t, s.Get(t, denied)); text != "This was allowed before, and the first answer stands.\n\nthe end" {
				t.Errorf("%q", text)
			}
			if allowed, asked, turns := s.questions(t); allowed != 2 || asked != 2 || turns != 1 {
				t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
			}
		})
	}
}

// TestWordsWithoutTheCodeDecideNothing checks a decision word without the code of the open
// question: the reply contains the code to type.
func TestWordsWithoutTheCodeDecideNothing(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	say := func(name, text string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"`+name+`"`)}
	}
	foreign := apitest.CodeReply(t, s.Get(t, say("other", "@call gate {}")).Text, "allow")
	old := s.Get(t, say("u", "@call gate {}\n@say a joke"))
	stale := apitest.CodeReply(t, old.Text, "allow")
	s.Get(t, say("u", apitest.CodeReply(t, old.Text, "deny")))
	mine := shown(s.Get(t, say("u", "@call gate {}\n@say the end")))
	own := apitest.CodeReply(t, mine, "allow")
	s.Gate.Leave <- struct{}{} // a wrong decision ends the turn
	for _, text := range []string{"allow", "Allow!", "deny", "`deny`.", "allow 1", "allow 000000", "deny 000000 because it is dangerous",
		foreign, "deny" + foreign[5:], own + " but only today", "allow it", "deny this"} {
		before := s.State(t)
		for path, body := range map[string]string{apitest.CompletionsPath: apitest.Completion(text, `"user":"u"`),
			apitest.ResponsesPath: strings.Replace(apitest.Completion(text, `"user":"u"`), `"messages"`, `"input"`, 1)} {
			r := s.Get(t, apitest.Call{Path: path, Body: body})
			if r.Status != 200 || !strings.Contains(r.Text, "Nothing was decided") || apitest.CodeReply(t, r.Text, "allow") != own {
				t.Errorf("%s: %d %s", text, r.Status, r.Text)
			}
		}
		if now := s.State(t); now != before {
			t.Fatalf("%s: %s became %s", text, before, now)
		}
	}
	before := s.State(t)
	if text := apitest.CompletionText(t, s.Get(t, say("u", stale))); text != "This was denied before, and the first answer stands.\n\na joke" {
		t.Errorf("a stale code: %q", text)
	}
	// messages
	for _, text := range []string{mine, "> " + own, "Do not " + own, "allow me to think about this", "deny everything, always",
		"continue please"} {
		if r := s.Get(t, say("u", text)); r.Status != 409 || r.Code != "TURN_IN_PROGRESS" {
			t.Errorf("%s: %d %s", text, r.Status, r.Text)
		}
	}
	if now := s.State(t); now != before {
		t.Fatalf("%s became %s", before, now)
	}
	if text := apitest.CompletionText(t, s.Get(t, say("u", own))); text != "the end" {
		t.Errorf("%q", text)
	}
}

// TestDenialsHaveAReason checks that the reason of a denial reaches the model, and that a reason
// that is too long decides nothing.
func TestDenialsHaveAReason(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	say := func(text string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"u"`)}
	}
	deny := apitest.CodeReply(t, s.Get(t, say("@call gate {}\n@say the end")).Text, "deny")
	if r := s.Get(t, say(deny+" "+strings.Repeat("x", 501))); r.Status != 400 || r.Code != "INVALID_REQUEST" ||
		!strings.Contains(r.Text, "500 characters") {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if text := apitest.CompletionText(t, s.Get(t, say(deny+"  Not before Monday,\nplease."))); text != "the end" {
		t.Errorf("%q", text)
	}
	var status, reason string
	if err := s.Pool.QueryRow(t.Context(), "SELECT status, reason FROM approvals").Scan(&status, &reason); err != nil ||
		status != "denied" || reason != "Not before Monday,\nplease." {
		t.Errorf("%s %q: %v", status, reason, err)
	}
}

// shown returns the visible text of a completion.
func shown(r apitest.Reply) string {
	var whole struct{ Choices []choice }
	if json.Unmarshal([]byte(r.Text), &whole) != nil || len(whole.Choices) == 0 {
		return r.Text
	}
	return *whole.Choices[0].Message.Content
}

// TestWordsBehindAnAnswerElsewhere checks that a reply to a question that was answered elsewhere
// does not answer the next question.
func TestWordsBehindAnAnswerElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	first := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","user":"u","input":` + apitest.Quote(asksTwice) + `}`})
	var id uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "SELECT id FROM approvals").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: id, Outcome: event.Denied}); err != nil {
		t.Fatal(err)
	}
	follow := func(id any, text string) apitest.Reply {
		return s.Get(t, apitest.Call{Path: apitest.ResponsesPath,
			Body: fmt.Sprintf(`{"model":"demo","input":"%s","previous_response_id":"%s"}`, text, id)})
	}
	second := follow(first.Body["id"], apitest.CodeReply(t, first.Text, "allow"))
	allow := apitest.CodeReply(t, second.Text, "allow")
	if !strings.Contains(second.Text, "This was denied before, and the first answer stands.") || strings.Contains(first.Text, allow) {
		t.Errorf("%d %s", second.Status, second.Text)
	}
	again := follow(second.Body["id"], "continue")
	if apitest.CodeReply(t, again.Text, "allow") != allow {
		t.Errorf("%d %s", again.Status, again.Text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 2 || turns != 1 {
		t.Fatalf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
	s.Gate.Leave <- struct{}{}
	if r := follow(again.Body["id"], allow); !strings.Contains(r.Text, "the end") {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	in := `"session_id":` + apitest.Quote(first.Body["session_id"].(string))
	third := apitest.CodeReply(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: apitest.Completion("@call gate {}\n@say another end", in)}).Text, "allow")
	for _, text := range []string{"allow", "deny", "allow 7", "continue"} {
		r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, in)})
		if apitest.CodeReply(t, r.Text, "allow") != third {
			t.Errorf("%s: %d %s", text, r.Status, r.Text)
		}
	}
	if r := follow(again.Body["id"], allow); !strings.Contains(r.Text, "the end") {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 1 || asked != 3 || turns != 2 {
		t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
}

// TestWordsThatAreLate checks that the response to a late reply reports that the question expired,
// and contains the text that followed.
func TestWordsThatAreLate(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	asked := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@call gate {}\n@say the end", `"user":"u"`)})
	if _, err := s.Pool.Exec(t.Context(), "UPDATE approvals SET expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	text := apitest.CompletionText(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: apitest.Completion(apitest.CodeReply(t, asked.Text, "allow"), `"user":"u"`)}))
	if !strings.HasPrefix(text, "The approval expired at ") || !strings.HasSuffix(text, " UTC. It counts as denied.\n\nthe end") {
		t.Errorf("%q", text)
	}
	r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("continue", `"user":"u"`)})
	thought := r.Body["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["reasoning_content"]
	if thought != "gate {}\ngate {}: not answered in time\n" {
		t.Errorf("%q", thought)
	}
}

// TestQuestionsOfAnotherKey checks that a key cannot answer the question of another key in a chat
// without a name.
func TestQuestionsOfAnotherKey(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	first := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@call gate {}\n@say the end")})
	s.Gate.Leave <- struct{}{}
	other := s.Issue(t, s.Workspace, apikey.All...)
	allow := apitest.CodeReply(t, shown(first), "allow")
	for i, body := range []string{after(shown(first), allow), apitest.Completion(allow), after(shown(first), "continue")} {
		s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Key: other, Body: body})
		if allowed, _, turns := s.questions(t); allowed != 0 || turns != i+2 {
			t.Errorf("%s: %d are allowed in %d turns", body, allowed, turns)
		}
	}
	if text := apitest.CompletionText(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: after(shown(first), allow)})); text != "the end" {
		t.Errorf("%q", text)
	}
}

// TestWordsAreMessages checks that decision words are plain messages if the turn asked nothing, or
// asked too long ago.
func TestWordsAreMessages(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	say := func(text string) apitest.Call {
		return apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(text, `"user":"u"`)}
	}
	s.Get(t, say(apitest.CodeReply(t, s.Get(t, say("@call gate {}\n@say the end")).Text, "deny")))
	if _, err := s.Pool.Exec(t.Context(), "UPDATE turns SET finished_at = finished_at - interval '2 hours'"); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"continue", "allow", "deny", "allow 7QK2MX", "deny access"} {
		s.Get(t, say(text))
		if _, _, turns := s.questions(t); turns != i+2 {
			t.Errorf("%s: %d turns", text, turns)
		}
	}
}

// TestQuestionInAChatWithoutAName checks that the code identifies a chat without a name, and that a
// named chat is identified only by its name.
func TestQuestionInAChatWithoutAName(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Declare(t, "API_TOKEN")
	secret := shown(s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: apitest.Completion("@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"x\"}\n@say the end")}))
	if text := apitest.CompletionText(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: apitest.Completion(apitest.CodeReply(t, secret, "continue"))})); text != secret {
		t.Errorf("continue: %q", text)
	}
	if text := apitest.CompletionText(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: apitest.Completion(apitest.CodeReply(t, secret, "deny"))})); text != "the end" {
		t.Errorf("deny: %q", text)
	}
	asked := shown(s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@call gate {}\n@say the end")}))
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: after(asked, "allow")}); r.Status != 200 ||
		apitest.CodeReply(t, r.Text, "allow") != apitest.CodeReply(t, asked, "allow") {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	named := shown(s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@call gate {}", `"user":"u"`)}))
	for _, text := range []string{"allow", "continue", apitest.CodeReply(t, named, "allow")} { // the code of another session
		if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: after(named, text)}); r.Status != 200 ||
			strings.Contains(r.Text, "Approval needed") {
			t.Errorf("%s: %d %s", text, r.Status, r.Text)
		}
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 3 || turns != 6 {
		t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
}

// TestCodesOfTwoApprovalsDecideNothing checks that a code that belongs to two approvals of a key
// decides neither.
func TestCodesOfTwoApprovalsDecideNothing(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	const ask = "@call gate {}\n@say the end"
	allow := apitest.CodeReply(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(ask)}).Text, "allow")
	s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(ask)})
	s.Gate.Leave <- struct{}{} // a wrong decision ends the turn
	if _, err := s.Pool.Exec(t.Context(), `UPDATE approvals SET id = (left(id::text, 24) || (SELECT right(min(id::text), 12) FROM `+
		`approvals))::uuid WHERE id::text > (SELECT min(id::text) FROM approvals)`); err != nil {
		t.Fatal(err)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(allow)}); r.Status != 200 ||
		strings.Contains(r.Text, "the end") {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 2 || turns != 3 {
		t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
}
