package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// asksTwice is a turn that asks for an approval, works, and asks for another.
const asksTwice = "@call gate {}\n@call gate {}\n@say the end"

// after is a conversation that goes on behind a message of the assistant.
func after(shown, text string, members ...string) string {
	body := strings.TrimSuffix(said(text, members...), "}")
	return strings.Replace(body, `"messages":[`, `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":`+quote(shown)+`},`, 1) + "}"
}

// questions counts the questions of a service.
func (s *service) questions(t *testing.T) (allowed, asked, turns int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FILTER (WHERE status = 'allowed') FROM approvals), (SELECT count(*) FROM approvals), (SELECT count(*) FROM turns)`).
		Scan(&allowed, &asked, &turns); err != nil {
		t.Fatal(err)
	}
	return allowed, asked, turns
}

// typed returns the reply that a question prints, such as `allow 7QK2MX`.
func typed(t *testing.T, question, verb string) string {
	t.Helper()
	found := regexp.MustCompile("`(" + verb + " [0-9A-Z]{6})`").FindStringSubmatch(question)
	if found == nil {
		t.Fatalf("the question has no code to %s: %s", verb, question)
	}
	return found[1]
}

// A word that arrives again decides nothing more, and starts no other turn.
func TestWordsDecideOneApproval(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		chat string
		word func(first reply, text string) call
	}{
		"in a named chat": {`"user":"u"`, func(_ reply, text string) call { return call{path: completions, body: said(text, `"user":"u"`)} }},
		"with its conversation": {`"user":"u"`, func(r reply, text string) call {
			return call{path: completions, body: after(shown(r), text, `"user":"u"`)}
		}},
		"in an unnamed chat":      {`"n":1`, func(r reply, text string) call { return call{path: completions, body: after(shown(r), text)} }},
		"without name and memory": {`"n":1`, func(_ reply, text string) call { return call{path: completions, body: said(text)} }},
		"behind something else": {`"user":"u"`, func(_ reply, text string) call {
			return call{path: completions, body: after("A joke?", text, `"user":"u"`)}
		}},
		"in lower case, punctuated": {`"user":"u"`, func(_ reply, text string) call {
			return call{path: completions, body: said(" **"+strings.ToLower(text)+"**. ", `"user":"u"`)}
		}},
		"with a hyphen and capitals": {`"user":"u"`, func(_ reply, text string) call {
			return call{path: completions, body: said("ALLOW ("+text[6:9]+"-"+text[9:]+")", `"user":"u"`)}
		}},
		"with a key": {`"user":"u"`, func(_ reply, text string) call {
			return call{path: completions, body: said(text, `"user":"u"`), header: []string{"Idempotency-Key", "k"}}
		}},
		"as a response": {`"user":"u"`, func(r reply, text string) call {
			return call{path: responses, body: `{"model":"demo","input":` + quote(text) + `,"previous_response_id":"resp_` + strings.TrimPrefix(r.body["id"].(string), "chatcmpl-") + `"}`}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{window: time.Hour})
			first := s.get(t, call{path: completions, body: said(asksTwice, way.chat)})
			text := typed(t, first.text, "allow")
			word := way.word(first, text)
			lost := make(chan struct{})
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					<-lost
					if r := s.get(t, word); r.status != 200 || !strings.Contains(r.text, "Reply `allow ") || strings.Contains(r.text, text) {
						t.Errorf("%d %s", r.status, r.text)
					}
				})
			}
			close(lost)
			s.Gate.Await(t)
			s.Gate.Leave <- struct{}{}
			wait.Until(t, "all goroutines", all.Wait)
			s.Gate.Leave <- struct{}{}
			second := s.get(t, word)
			next := typed(t, second.text, "allow")
			if allowed, asked, turns := s.questions(t); allowed != 1 || asked != 2 || turns != 1 || next == text {
				t.Fatalf("%d of %d are allowed in %d turns", allowed, asked, turns)
			}
			for range 2 {
				if r := s.get(t, way.word(first, next)); r.status != 200 || !strings.Contains(r.text, `"the end"`) {
					t.Errorf("%d %s", r.status, r.text)
				}
			}
			denied := call{path: completions, body: said(strings.Replace(next, "allow", "deny", 1), way.chat)}
			if text := message(t, s.get(t, denied)); text != "This was allowed before, and the first answer stands.\n\nthe end" {
				t.Errorf("%q", text)
			}
			if allowed, asked, turns := s.questions(t); allowed != 2 || asked != 2 || turns != 1 {
				t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
			}
		})
	}
}

// A word without the code of the open question decides nothing: the reply has the code to type.
func TestWordsWithoutTheCodeDecideNothing(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(name, text string) call { return call{path: completions, body: said(text, `"user":"`+name+`"`)} }
	foreign := typed(t, s.get(t, say("other", "@call gate {}")).text, "allow")
	old := s.get(t, say("u", "@call gate {}\n@say a joke"))
	stale := typed(t, old.text, "allow")
	s.get(t, say("u", typed(t, old.text, "deny")))
	mine := shown(s.get(t, say("u", "@call gate {}\n@say the end")))
	own := typed(t, mine, "allow")
	for _, text := range []string{"allow", "Allow!", "deny", "`deny`.", "allow 1", "allow 000000", "deny 000000 because it is dangerous", foreign, "deny" + foreign[5:], own + " but only today", "allow it", "deny this"} {
		before := s.state(t)
		for path, body := range map[string]string{completions: said(text, `"user":"u"`), responses: strings.Replace(said(text, `"user":"u"`), `"messages"`, `"input"`, 1)} {
			r := s.get(t, call{path: path, body: body})
			if r.status != 200 || !strings.Contains(r.text, "Nothing was decided") || typed(t, r.text, "allow") != own {
				t.Errorf("%s: %d %s", text, r.status, r.text)
			}
		}
		if now := s.state(t); now != before {
			t.Fatalf("%s: %s became %s", text, before, now)
		}
	}
	before := s.state(t)
	if text := message(t, s.get(t, say("u", stale))); text != "This was denied before, and the first answer stands.\n\na joke" {
		t.Errorf("a stale code: %q", text)
	}
	for _, text := range []string{mine, "> " + own, "Do not " + own, "allow me to think about this", "deny everything, always", "continue please"} { // messages
		if r := s.get(t, say("u", text)); r.status != 409 || r.code != "TURN_IN_PROGRESS" {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
	if now := s.state(t); now != before {
		t.Fatalf("%s became %s", before, now)
	}
	s.Gate.Leave <- struct{}{}
	if text := message(t, s.get(t, say("u", own))); text != "the end" {
		t.Errorf("%q", text)
	}
}

// The reason of a denial reaches the model, and one that is too long decides nothing.
func TestDenialsHaveAReason(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(text string) call { return call{path: completions, body: said(text, `"user":"u"`)} }
	deny := typed(t, s.get(t, say("@call gate {}\n@say the end")).text, "deny")
	if r := s.get(t, say(deny+" "+strings.Repeat("x", 501))); r.status != 400 || r.code != "INVALID_REQUEST" || !strings.Contains(r.text, "500 characters") {
		t.Errorf("%d %s", r.status, r.text)
	}
	if text := message(t, s.get(t, say(deny+"  Not before Monday,\nplease."))); text != "the end" {
		t.Errorf("%q", text)
	}
	var status, reason string
	if err := s.Pool.QueryRow(t.Context(), "SELECT status, reason FROM approvals").Scan(&status, &reason); err != nil || status != "denied" || reason != "Not before Monday,\nplease." {
		t.Errorf("%s %q: %v", status, reason, err)
	}
}

// shown is what a completion shows.
func shown(r reply) string {
	var whole struct{ Choices []choice }
	if json.Unmarshal([]byte(r.text), &whole) != nil || len(whole.Choices) == 0 {
		return r.text
	}
	return *whole.Choices[0].Message.Content
}

// What was answered elsewhere is not answered once more for the next question.
func TestWordsBehindAnAnswerElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	first := s.get(t, call{path: responses, body: `{"model":"demo","user":"u","input":` + quote(asksTwice) + `}`})
	var id uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "SELECT id FROM approvals").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: id, Outcome: event.Denied}); err != nil {
		t.Fatal(err)
	}
	follow := func(id any, text string) reply {
		return s.get(t, call{path: responses, body: fmt.Sprintf(`{"model":"demo","input":"%s","previous_response_id":"%s"}`, text, id)})
	}
	second := follow(first.body["id"], typed(t, first.text, "allow"))
	allow := typed(t, second.text, "allow")
	if !strings.Contains(second.text, "This was denied before, and the first answer stands.") || strings.Contains(first.text, allow) {
		t.Errorf("%d %s", second.status, second.text)
	}
	again := follow(second.body["id"], "continue")
	if typed(t, again.text, "allow") != allow {
		t.Errorf("%d %s", again.status, again.text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 2 || turns != 1 {
		t.Fatalf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
	s.Gate.Leave <- struct{}{}
	if r := follow(again.body["id"], allow); !strings.Contains(r.text, "the end") {
		t.Errorf("%d %s", r.status, r.text)
	}
	in := `"session_id":` + quote(first.body["session_id"].(string))
	third := typed(t, s.get(t, call{path: completions, body: said("@call gate {}\n@say another end", in)}).text, "allow")
	for _, text := range []string{"allow", "deny", "allow 7", "continue"} {
		r := s.get(t, call{path: completions, body: said(text, in)})
		if typed(t, r.text, "allow") != third {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
	if r := follow(again.body["id"], allow); !strings.Contains(r.text, "the end") {
		t.Errorf("%d %s", r.status, r.text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 1 || asked != 3 || turns != 2 {
		t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
}

// An expired question is said to be one, and what came after is told.
func TestWordsThatAreLate(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	asked := s.get(t, call{path: completions, body: said("@call gate {}\n@say the end", `"user":"u"`)})
	if _, err := s.Pool.Exec(t.Context(), "UPDATE approvals SET expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	text := message(t, s.get(t, call{path: completions, body: said(typed(t, asked.text, "allow"), `"user":"u"`)}))
	if !strings.HasPrefix(text, "The time to answer was over at ") || !strings.HasSuffix(text, " UTC: that counts as denied.\n\nthe end") {
		t.Errorf("%q", text)
	}
	r := s.get(t, call{path: completions, body: said("continue", `"user":"u"`)})
	if thought := r.body["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["reasoning_content"]; thought != "gate {}\ngate {}: nobody answered in time\n" {
		t.Errorf("%q", thought)
	}
}

// What another key was asked is not answered in a chat without a name.
func TestQuestionsOfAnotherKey(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	first := s.get(t, call{path: completions, body: said("@call gate {}\n@say the end")})
	s.Gate.Leave <- struct{}{}
	other := s.Issue(t, s.Workspace, apikey.All...)
	allow := typed(t, shown(first), "allow")
	for i, body := range []string{after(shown(first), allow), said(allow), after(shown(first), "continue")} {
		s.get(t, call{path: completions, key: other, body: body})
		if allowed, _, turns := s.questions(t); allowed != 0 || turns != i+2 {
			t.Errorf("%s: %d are allowed in %d turns", body, allowed, turns)
		}
	}
	if text := message(t, s.get(t, call{path: completions, body: after(shown(first), allow)})); text != "the end" {
		t.Errorf("%q", text)
	}
}

// Where a turn has asked nothing, or long ago, its words are messages.
func TestWordsAreMessages(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(text string) call { return call{path: completions, body: said(text, `"user":"u"`)} }
	s.get(t, say(typed(t, s.get(t, say("@call gate {}\n@say the end")).text, "deny")))
	if _, err := s.Pool.Exec(t.Context(), "UPDATE turns SET finished_at = finished_at - interval '2 hours'"); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"continue", "allow", "deny", "allow 7QK2MX", "deny access"} {
		s.get(t, say(text))
		if _, _, turns := s.questions(t); turns != i+2 {
			t.Errorf("%s: %d turns", text, turns)
		}
	}
}

// A chat without a name is known by the code, and a named chat only by its name.
func TestQuestionInAChatWithoutAName(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	s.declare(t, "API_TOKEN")
	secret := shown(s.get(t, call{path: completions, body: said("@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"x\"}\n@say the end")}))
	if text := message(t, s.get(t, call{path: completions, body: said(typed(t, secret, "continue"))})); text != secret {
		t.Errorf("continue: %q", text)
	}
	if text := message(t, s.get(t, call{path: completions, body: said(typed(t, secret, "deny"))})); text != "the end" {
		t.Errorf("deny: %q", text)
	}
	asked := shown(s.get(t, call{path: completions, body: said("@call gate {}\n@say the end")}))
	if r := s.get(t, call{path: completions, body: after(asked, "allow")}); r.status != 200 || typed(t, r.text, "allow") != typed(t, asked, "allow") {
		t.Errorf("%d %s", r.status, r.text)
	}
	named := shown(s.get(t, call{path: completions, body: said("@call gate {}", `"user":"u"`)}))
	for _, text := range []string{"allow", "continue", typed(t, named, "allow")} { // the code of another session
		if r := s.get(t, call{path: completions, body: after(named, text)}); r.status != 200 || strings.Contains(r.text, "Approval needed") {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 3 || turns != 6 {
		t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
}

// A code that two approvals of a key have decides neither.
func TestCodesOfTwoApprovalsDecideNothing(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	const ask = "@call gate {}\n@say the end"
	allow := typed(t, s.get(t, call{path: completions, body: said(ask)}).text, "allow")
	s.get(t, call{path: completions, body: said(ask)})
	if _, err := s.Pool.Exec(t.Context(), `UPDATE approvals SET id = (left(id::text, 24) || (SELECT right(min(id::text), 12) FROM approvals))::uuid WHERE id::text > (SELECT min(id::text) FROM approvals)`); err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{path: completions, body: said(allow)}); r.status != 200 || strings.Contains(r.text, "the end") {
		t.Errorf("%d %s", r.status, r.text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 2 || turns != 3 {
		t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
}
