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

// A word that arrives again decides nothing more: neither what the chat was not shown, nor by
// starting another turn.
func TestWordsDecideWhatWasShown(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		allow  func(first reply) call
		second string
	}{
		"in a named chat":       {func(reply) call { return call{path: completions, body: said("allow", `"user":"u"`)} }, "allow 2"},
		"with its number":       {func(reply) call { return call{path: completions, body: said("allow 1", `"user":"u"`)} }, "allow 2"},
		"with its conversation": {func(r reply) call { return call{path: completions, body: after(shown(r), "allow", `"user":"u"`)} }, "allow 2"},
		"in an unnamed chat":    {func(r reply) call { return call{path: completions, body: after(shown(r), "allow")} }, ""},
		"with a key": {func(reply) call {
			return call{path: completions, body: said("allow", `"user":"u"`), header: []string{"Idempotency-Key", "k"}}
		}, "allow 2"},
		"as a response": {func(r reply) call {
			return call{path: responses, body: `{"model":"demo","input":"allow","previous_response_id":"resp_` + strings.TrimPrefix(r.body["id"].(string), "chatcmpl-") + `"}`}
		}, "allow 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{window: time.Hour})
			first := s.get(t, call{path: completions, body: said(asksTwice, `"user":"u"`)})
			word := way.allow(first)
			lost := make(chan struct{})
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					<-lost
					if r := s.get(t, word); r.status != 200 || !strings.Contains(r.text, "Reply `allow 2` or `deny 2`") {
						t.Errorf("%d %s", r.status, r.text)
					}
				})
			}
			close(lost)
			<-s.Gate.Entered
			s.Gate.Leave <- struct{}{}
			all.Wait()
			s.Gate.Leave <- struct{}{}
			if r := s.get(t, word); !strings.Contains(r.text, "Reply `allow 2` or `deny 2`") {
				t.Errorf("once more: %s", r.text)
			}
			if allowed, asked, turns := s.questions(t); allowed != 1 || asked != 2 || turns != 1 {
				t.Fatalf("%d of %d are allowed in %d turns", allowed, asked, turns)
			}
			last := call{path: completions, body: said(way.second, `"user":"u"`)}
			if way.second == "" {
				last = call{path: completions, body: after(shown(s.get(t, word)), "allow")}
			}
			for range 2 {
				if text := message(t, s.get(t, last)); text != "the end" {
					t.Errorf("%q", text)
				}
			}
			for _, again := range []string{"continue", "allow 2"} {
				if text := message(t, s.get(t, call{path: completions, body: said(again, `"user":"u"`)})); text != "the end" {
					t.Errorf("%s: %q", again, text)
				}
			}
			if text := message(t, s.get(t, call{path: completions, body: said("deny 2", `"user":"u"`)})); text != "This was allowed before, and the first answer stands.\n\nthe end" {
				t.Errorf("%q", text)
			}
			if allowed, asked, turns := s.questions(t); allowed != 2 || asked != 2 || turns != 1 {
				t.Errorf("%d of %d are allowed in %d turns", allowed, asked, turns)
			}
		})
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
	second := follow(first.body["id"], "allow")
	if !strings.Contains(second.text, "This was denied before, and the first answer stands.") || !strings.Contains(second.text, "Reply `allow 2`") {
		t.Errorf("%d %s", second.status, second.text)
	}
	again := follow(second.body["id"], "continue")
	if !strings.Contains(again.text, "Reply `allow 2`") {
		t.Errorf("%d %s", again.status, again.text)
	}
	if allowed, asked, turns := s.questions(t); allowed != 0 || asked != 2 || turns != 1 {
		t.Fatalf("%d of %d are allowed in %d turns", allowed, asked, turns)
	}
	// In a turn that came later, a word without a number is not for its question.
	s.Gate.Leave <- struct{}{}
	if r := follow(again.body["id"], "allow"); !strings.Contains(r.text, "the end") {
		t.Errorf("%d %s", r.status, r.text)
	}
	s.get(t, call{path: completions, body: said("@call gate {}\n@say another end", `"session_id":`+quote(first.body["session_id"].(string)))})
	for _, text := range []string{"allow", "deny", "allow 7", "continue"} {
		r := s.get(t, call{path: completions, body: said(text, `"session_id":`+quote(first.body["session_id"].(string)))})
		if !strings.Contains(r.text, "Reply `allow 3` or `deny 3`") {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
	if r := follow(again.body["id"], "allow"); !strings.Contains(r.text, "the end") {
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
	s.get(t, call{path: completions, body: said("@call gate {}\n@say the end", `"user":"u"`)})
	if _, err := s.Pool.Exec(t.Context(), "UPDATE approvals SET expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	text := message(t, s.get(t, call{path: completions, body: said("allow", `"user":"u"`)}))
	if !strings.HasPrefix(text, "The time to answer was over at ") || !strings.HasSuffix(text, " UTC: that counts as denied.\n\nthe end") {
		t.Errorf("%q", text)
	}
	r := s.get(t, call{path: completions, body: said("continue", `"user":"u"`)})
	if thought := r.body["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["reasoning_content"]; thought != "gate {}\ngate {}: nobody answered in time\n" {
		t.Errorf("%q", thought)
	}
}

// A word in a conversation that shows something else decides nothing, whatever its number: it is
// answered with the question that waits.
func TestWordsOfAnotherConversation(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(name, text string) call { return call{path: completions, body: said(text, `"user":"`+name+`"`)} }
	foreign := shown(s.get(t, say("other", "@call gate {}")))
	mine := shown(s.get(t, say("u", "@call gate {}\n@say the end")))
	own := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(mine)
	s.Gate.Leave <- struct{}{}
	for name, last := range map[string]string{
		"a joke":            "Shall I tell a joke? Reply `allow` or `deny`.",
		"nothing":           "",
		"an unknown id":     strings.ReplaceAll(mine, own, uuid.NewString()),
		"another session's": foreign,
	} {
		for _, word := range []string{"allow", "allow 1", "allow 2", "deny"} {
			before := s.state(t)
			for path, body := range map[string]string{completions: after(last, word, `"user":"u"`), responses: strings.Replace(after(last, word, `"user":"u"`), `"messages"`, `"input"`, 1)} {
				if r := s.get(t, call{path: path, body: body}); r.status != 200 || !strings.Contains(r.text, own) {
					t.Errorf("%s behind %s: %d %s", word, name, r.status, r.text)
				}
			}
			if now := s.state(t); now != before {
				t.Fatalf("%s behind %s: %s became %s", word, name, before, now)
			}
		}
	}
	first := s.get(t, call{path: responses, body: `{"model":"demo","user":"v","input":"@call gate {}"}`})
	before := s.state(t)
	both := strings.Replace(after("A joke?", "allow", `"previous_response_id":`+quote(first.body["id"].(string))), `"messages"`, `"input"`, 1)
	if r := s.get(t, call{path: responses, body: both}); r.status != 200 || s.state(t) != before {
		t.Errorf("behind a response: %d %s", r.status, r.text)
	}
	if text := message(t, s.get(t, call{path: completions, body: after(mine, "allow", `"user":"u"`)})); text != "the end" {
		t.Errorf("behind its question: %q", text)
	}
}

// What another key was asked is not answered in a chat without a name.
func TestQuestionsOfAnotherKey(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	first := s.get(t, call{path: completions, body: said("@call gate {}\n@say the end")})
	s.Gate.Leave <- struct{}{}
	other := s.Issue(t, s.Workspace, apikey.All...)
	s.get(t, call{path: completions, key: other, body: after(shown(first), "allow")})
	if allowed, _, turns := s.questions(t); allowed != 0 || turns != 2 {
		t.Errorf("%d are allowed in %d turns", allowed, turns)
	}
	if text := message(t, s.get(t, call{path: completions, body: after(shown(first), "allow")})); text != "the end" {
		t.Errorf("%q", text)
	}
}

// Where a turn has asked nothing, or long ago, its words are messages.
func TestWordsAreMessages(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	say := func(text string) call { return call{path: completions, body: said(text, `"user":"u"`)} }
	s.get(t, say("@call gate {}\n@say the end"))
	s.get(t, say("deny"))
	if _, err := s.Pool.Exec(t.Context(), "UPDATE turns SET finished_at = finished_at - interval '2 hours'"); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"continue", "allow", "deny"} {
		s.get(t, say(text))
		if _, _, turns := s.questions(t); turns != i+2 {
			t.Errorf("%s: %d turns", text, turns)
		}
	}
}

// Where nothing tells the chat, a question says what a reply must bring along. Where it is known
// a question says nothing of that.
func TestQuestionInAChatThatNothingNames(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	s.declare(t, "API_TOKEN")
	const why, secret = "This chat has no name", "@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"x\"}"
	first := s.get(t, call{path: completions, body: said(asksTwice)})
	text := shown(first)
	if !strings.Contains(text, "UTC. "+why+" (the field `user` or the header `X-Session-Id` gives one), so a reply counts only where your client sends this conversation along. Elsewhere: ") {
		t.Errorf("%s", text)
	}
	s.Gate.Leave <- struct{}{}
	if next := shown(s.get(t, call{path: completions, body: after(text, "allow")})); !strings.Contains(next, "Reply `allow 2`") || strings.Contains(next, why) {
		t.Errorf("a chat that sends its conversation along: %s", next)
	}
	if text := shown(s.get(t, call{path: completions, body: said(secret)})); !strings.Contains(text, "to go on without it. "+why) {
		t.Errorf("a secret: %s", text)
	}
	alone := s.get(t, call{path: responses, body: `{"model":"demo","input":` + quote(asksTwice) + `}`})
	if !strings.Contains(alone.text, why+" (the field `conversation` or the header `X-Session-Id` gives one), so a reply counts only where your client sends `previous_response_id` or this conversation along.") {
		t.Errorf("%s", alone.text)
	}
	s.Gate.Leave <- struct{}{}
	for name, c := range map[string]call{
		"a response that follows": {path: responses, body: `{"model":"demo","previous_response_id":"` + alone.body["id"].(string) + `","input":"allow"}`},
		"a named response":        {path: responses, body: `{"model":"demo","conversation":"c","input":` + quote(asksTwice) + `}`},
		"a named chat":            {path: completions, body: said(asksTwice, `"user":"u"`)},
		"a session":               {path: completions, body: said("continue", `"session_id":"`+alone.body["session_id"].(string)+`"`)},
	} {
		if r := s.get(t, c); !strings.Contains(r.text, "Approval needed") || strings.Contains(r.text, why) {
			t.Errorf("%s: %s", name, r.text)
		}
	}
}
