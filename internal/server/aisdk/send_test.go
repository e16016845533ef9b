package aisdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/turn"
)

func approval(id string, approved bool) string {
	return fmt.Sprintf(`{"id":%q,"approved":%v}`, id, approved)
}

// TestChatMessageIsSentOnce checks that messages with the same id are one message, and that a
// regenerate trigger starts another turn.
func TestChatMessageIsSentOnce(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	first := apitest.UIChat("c1", apitest.UISubmitted, apitest.UIUser("m1", "count to 3"))
	list := s.Stream(t, first)
	for name, c := range map[string]apitest.Call{
		"the same": first,
		"with another history": apitest.UIChat("c1", apitest.UISubmitted, apitest.UIUser("m0", "earlier"), apitest.UIAssistant("a0"),
			apitest.UIUser("m1", "count to 3")),
		"with something of its": apitest.UIChat("c1", apitest.UISubmitted+`"tab":2,`, apitest.UIUser("m1", "count to 3")),
	} {
		res := s.Do(t, c)
		if again, _ := apitest.Frames(t, res); strings.Join(again, "\n") != strings.Join(list, "\n") ||
			res.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %v", name, again)
		}
	}
	if n := s.CountMessages(t); n != 1 {
		t.Fatalf("one message became %d", n)
	}
	for i, c := range []apitest.Call{
		apitest.UIChat("c2", apitest.UISubmitted, apitest.UIUser("m1", "count to 3")),                               // of another chat
		apitest.UIChat("c1", apitest.UISubmitted, apitest.UIUser("m1", "count to 2")),                               // edited
		apitest.UIChat("c1", apitest.UISubmitted+`"messageId":"m1",`, apitest.UIUser("m1", "count to 3")),           // sent again on purpose
		apitest.UIChat("c1", apitest.UISubmitted+`"messageId":"m1",`, apitest.UIUser("m1", "count to 3")),           // and again
		apitest.UIChat("c1", `"trigger":"regenerate-message",`, apitest.UIUser("m1", "count to 3")),                 // regenerated
		apitest.UIChat("c1", `"trigger":"regenerate-message","messageId":"a",`, apitest.UIUser("m1", "count to 3")), // the same
		apitest.UIChat("c1", `"trigger":"regenerate-message","messageId":"a",`, apitest.UIUser("m1", "count to 3")),
		apitest.UIChat("c1", apitest.UISubmitted, strings.Replace(apitest.UIUser("", "count to 3"), `"id":"",`, "", 1)), // without an id
		apitest.UIChat("c1", apitest.UISubmitted, strings.Replace(apitest.UIUser("", "count to 3"), `"id":"",`, "", 1)),
	} {
		if got := apitest.FrameTypes(t, s.Stream(t,
			c)); got != "start start-step text-start text-delta text-end data-usage finish-step finish [DONE]" || s.CountMessages(t) != i+2 {
			t.Errorf("%s: %s, %d messages", c.Body, got, s.CountMessages(t))
		}
	}
	// A double click is one turn; another message is blocked by it.
	again := apitest.UIChat("c3", `"trigger":"regenerate-message",`, apitest.UIUser("m1", apitest.HeldCommand))
	s.Do(t, again)
	s.Gate.Await(t)
	n := s.CountMessages(t)
	second := s.Do(t, again)
	if r := s.Get(t, apitest.UIChat("c3", apitest.UISubmitted, apitest.UIUser("m2", "x"))); r.Status != 409 ||
		r.Code != "TURN_IN_PROGRESS" || !strings.Contains(r.Text, "cancel_url") {
		t.Errorf("another message: %d %s", r.Status, r.Text)
	}
	s.Gate.Leave <- struct{}{}
	if _, ok := apitest.Frames(t, second); !ok || s.CountMessages(t) != n {
		t.Errorf("a double click: %d messages after %d", s.CountMessages(t), n)
	}
}

func TestChatIsRefusedInItsWords(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for want, c := range map[string]apitest.Call{
		"id must be a string.":        {Body: `{"id":7,"messages":[` + apitest.UIUser("m", "x") + `]}`},
		"id has more than 255 bytes.": apitest.UIChat(strings.Repeat("x", 256), "", apitest.UIUser("m", "x")),
		"trigger must be one of submit-message, ": apitest.UIChat("c", `"trigger":"resume-stream",`,
			apitest.UIUser("m", "x")),
		"messages/0/parts has more than 200000": apitest.UIChat("c", "",
			apitest.UIUser("m", strings.Repeat("x", 200_001))),
		"attachments must be an array.": apitest.UIChat("c", `"attachments":7,`, apitest.UIUser("m", "x")),
		`A part of the type "file" cannot be rea`: apitest.UIChat("c", "", strings.Replace(apitest.UIUser("m", "x"),
			`]}`, `,{"type":"file","url":"data:"}]}`, 1)),
		`A part of the type "data-x" cannot be read here. Say it as text`: apitest.UIChat("c", "", strings.Replace(apitest.UIUser("m", "x"),
			`]}`, `,{"type":"data-x"}]}`, 1)),
		"messages/1/parts/2/approval/approved mu": apitest.UIChat("c", "", apitest.UIUser("m", "x"),
			apitest.UIAssistant("a", `{"id":"`+uuid.NewString()+`","approved":"yes"}`)),
		"messages/1/parts/2/approval/id is not a": apitest.UIChat("c", "", apitest.UIUser("m", "x"),
			apitest.UIAssistant("a", `{"id":"x","approved":true}`)),
		"messages/1/parts/2/approval must be an ": apitest.UIChat("c", "", apitest.UIUser("m", "x"),
			apitest.UIAssistant("a", `null`)),
	} {
		c.Path = apitest.UIChatPath
		r := s.Get(t, c)
		told, _ := r.Body["error"].(map[string]any)
		if list, _ := told["violations"].([]any); r.Status != 400 || len(list) != 1 || !strings.HasPrefix(fmt.Sprint(told["message"]),
			want) || strings.Contains(r.Text, "caller_id") {
			t.Errorf("%s %d %s", want, r.Status, r.Text)
		}
	}
	res := s.Do(t, apitest.UIChat("c", apitest.UISubmitted+
		`"tools":{},"system":"s","context":[],"webSearch":true,"limits":{"max_turns":3},`,
		`{"role":"system","parts":[{"type":"text","text":"s"}]}`, apitest.UIUser("m", "count to 2")))
	if got := res.Header.Get("X-Parley-Ignored"); res.StatusCode != http.StatusOK || got != "system, webSearch, system messages" {
		t.Errorf("ignored: %d %q", res.StatusCode, got)
	}
}

// TestChatAnswersAmongOthers checks that an answer is found in the message that continues, and that
// an older rejected answer does not block a new one.
func TestChatAnswersAmongOthers(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	one := apitest.FrameField(s.Stream(t, apitest.UIChat("c1", apitest.UISubmitted,
		apitest.UIUser("m1", "@call gate {\"n\":1}\n@call gate {\"n\":2}\n@say the end"))), "approvalId")
	// first answer
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: uuid.MustParse(one), Outcome: event.Allowed}); err != nil {
		t.Fatal(err)
	}
	s.Gate.Leave <- struct{}{}
	if r := s.Get(t, apitest.UIChat("c1", apitest.UISubmitted, apitest.UIUser("m1", "x"),
		apitest.UIAssistant("a1", approval(one, false)))); r.Status != 409 || r.Code != "APPROVAL_ALREADY_DECIDED" {
		t.Fatalf("the loser: %d %s", r.Status, r.Text)
	}
	list := s.Stream(t, apitest.Call{Path: apitest.UIChatPath + "/c1/stream"})
	two := apitest.FrameField(list, "approvalId")
	if two == one {
		t.Fatalf("the second question is missing: %v", list)
	}
	s.Gate.Leave <- struct{}{}
	// The next message was rejected meanwhile, and is still on the page.
	if r := s.Get(t, apitest.UIChat("c1", apitest.UISubmitted, apitest.UIUser("m1", "x"), apitest.UIAssistant("a1"),
		apitest.UIUser("m2", "and?"))); r.Status != 409 || r.Code != "TURN_IN_PROGRESS" {
		t.Errorf("a message while it waits: %d %s", r.Status, r.Text)
	}
	got := apitest.FrameTypes(t, s.Stream(t, apitest.UIChat("c1", apitest.UISubmitted+`"messageId":"a1",`, apitest.UIUser("m1", "x"),
		apitest.UIAssistant("a1", approval(one, false), approval(two, true)), apitest.UIUser("m2", "and?"))))
	if got != "start tool-input-available tool-output-available finish-step start-step text-start text-delta text-end data-usage "+
		"finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
}

// TestChatAnswersEveryCall checks that each call of a question has an id and an answer of its own.
// The calls run together if every one of them is allowed, or not at all.
func TestChatAnswersEveryCall(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	ask := func(name string) (ids []string) {
		for _, f := range s.Stream(t, apitest.UIMessage(name, "@call gate {\"n\":1} gate {\"n\":2}\n@say the end")) {
			if id := apitest.FrameField([]string{f}, "approvalId"); id != "" {
				ids = append(ids, id)
			}
		}
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Fatalf("the question about two calls is %v", ids)
		}
		return ids
	}
	say := func(name string, approvals ...string) apitest.Call {
		return apitest.UIChat(name, apitest.UISubmitted, apitest.UIUser("m1", "x"), apitest.UIAssistant("a1", approvals...))
	}
	one := ask("c1")
	before := s.State(t)
	question, _, _ := strings.Cut(one[0], ":")
	for name, approvals := range map[string][]string{
		"one of two":        {approval(one[0], true)},
		"the other":         {approval(one[1], true)},
		"none by its name":  {approval(question, true), approval(question, true)},
		"one of two, twice": {approval(one[0], true), approval(one[0], true)},
	} {
		if r := s.Get(t, say("c1", approvals...)); r.Status != 400 || r.Code != "INVALID_REQUEST" ||
			!strings.Contains(r.Text, "answer each of them") || !strings.Contains(r.Text, question+":") {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	for _, id := range []string{question + ":3", question + ":0", question + ":", question + ":x"} {
		if r := s.Get(t, say("c1", approval(one[0], true), approval(one[1], true), approval(id, true))); r.Status != 404 ||
			r.Code != "APPROVAL_NOT_FOUND" {
			t.Errorf("%s: %d %s", id, r.Status, r.Text)
		}
	}
	if after := s.State(t); after != before || len(s.Gate.Entered) != 0 {
		t.Errorf("%s became %s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	if got := apitest.FrameTypes(t, s.Stream(t, say("c1", approval(one[0], true), approval(one[1], true)))); !strings.Contains(got,
		"tool-output-available") || len(s.Gate.Entered) != 2 {
		t.Errorf("both are allowed: %s, %d calls ran", got, len(s.Gate.Entered))
	}
	for i, answers := range [][]bool{{true, false}, {false, true}, {false, false}, {false}} {
		name := fmt.Sprint("d", i)
		ids := ask(name)
		var approvals []string
		for n, ok := range answers {
			approvals = append(approvals, fmt.Sprintf(`{"id":%q,"approved":%v,"reason":"because"}`, ids[n], ok))
		}
		list := s.Stream(t, say(name, approvals...))
		if n := strings.Count(strings.Join(list, "\n"), "tool-output-denied"); n != 2 || len(s.Gate.Entered) != 2 {
			t.Errorf("%v: %v, %d calls ran", answers, list, len(s.Gate.Entered))
		}
	}
}

// TestChatCannotEditACall checks that an approval cannot change the arguments of a call.
func TestChatCannotEditACall(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id := apitest.FrameField(s.Stream(t, apitest.UIMessage("c",
		`@call gate {"big":12345678901234567890,"text":"\ud83d\ude00 <&>","list":[1,{"n":null}]}`+"\n@say the end")), "approvalId")
	part := func(members string, approved bool) apitest.Call {
		parts := fmt.Sprintf(`{%s,"toolCallId":"c","state":"approval-responded","approval":%s}`, members, approval(id, approved))
		return apitest.UIChat("c", apitest.UISubmitted, apitest.UIUser("m1", "x"), `{"id":"a1","role":"assistant","parts":[`+parts+`]}`)
	}
	say := func(input string, approved bool) apitest.Call {
		return part(`"type":"dynamic-tool","toolName":"gate","input":`+input, approved)
	}
	s.Gate.Leave <- struct{}{}
	before := s.State(t)
	for edited, param := range map[string]string{
		`"type":"dynamic-tool","input":{}`:   "input",
		`"type":"dynamic-tool","input":"x"`:  "input",
		`"type":"dynamic-tool","input":null`: "input",
		`"type":"tool-gate","input":null`:    "input",
		`"type":"dynamic-tool","toolName":"gate","input":{"big":12345678901234567890,"text":"😀 <&>","list":[1,{"n":0}]}`: "input",
		`"type":"dynamic-tool","toolName":"grep"`: "toolName",
		`"type":"dynamic-tool","toolName":"Gate"`: "toolName",
		`"type":"dynamic-tool","toolName":null`:   "toolName",
		`"type":"dynamic-tool","toolName":["x"]`:  "toolName",
		`"type":"tool-grep"`:                      "type",
	} {
		r := s.Get(t, part(edited, true))
		e, _ := r.Body["error"].(map[string]any)
		if r.Status != 400 || e["param"] != "messages/1/parts/0/"+param || !strings.Contains(r.Text, "The "+param+" of a call cannot be edited") {
			t.Errorf("%s: %d %s", edited, r.Status, r.Text)
		}
	}
	if after := s.State(t); after != before {
		t.Fatalf("%s became %s", before, after)
	}
	same := say(`{ "list": [1.0, {"n": null}], "text": "😀 <&>", "big": 12345678901234567000 }`, true) // as JavaScript writes it
	if got := apitest.FrameTypes(t, s.Stream(t, same)); !strings.Contains(got, "tool-output-available") {
		t.Errorf("unedited: %s", got)
	}
	for name, c := range map[string]struct {
		part     string
		approved bool
		want     string
	}{
		"denied":      {`"type":"dynamic-tool","toolName":"grep","input":{"n":1}`, false, "tool-output-denied"},
		"says little": {`"type":"dynamic-tool"`, true, "tool-output-available"},
		"static":      {`"type":"tool-gate","input":{}`, true, "tool-output-available"},
	} {
		if c.approved {
			s.Gate.Leave <- struct{}{}
		}
		id = apitest.FrameField(s.Stream(t, apitest.UIMessage(name, "@call gate {}\n@say the end")), "approvalId")
		answered := part(c.part, c.approved)
		answered.Body = strings.Replace(answered.Body, `"id":"c"`, `"id":`+apitest.Quote(name), 1)
		if got := apitest.FrameTypes(t, s.Stream(t, answered)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestChatIsCanceled checks that closing a stream does not cancel its turn, and that DELETE does.
func TestChatIsCanceled(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	stop := apitest.Call{Method: http.MethodDelete, Path: apitest.UIChatPath + "/c1/stream"}
	for range 2 {
		if r := s.Get(t, stop); r.Status != 200 || r.Text != `{"data":{"canceled":false}}`+"\n" {
			t.Errorf("nothing is in progress: %d %s", r.Status, r.Text)
		}
		s.Stream(t, apitest.UIMessage("c1", "count to 2"))
	}
	res := s.Do(t, apitest.UIMessage("c1", apitest.HeldCommand))
	s.Gate.Await(t)
	if r := s.Get(t, stop); r.Status != 200 || r.Text != `{"data":{"canceled":true}}`+"\n" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if list, ok := apitest.Frames(t, res); !ok || apitest.FrameTypes(t, list) != whileHeld+" tool-output-error data-usage abort [DONE]" {
		t.Errorf("%v", list)
	}
	if r := s.Get(t, apitest.Call{Method: http.MethodDelete, Path: apitest.UIChatPath + "/" + strings.Repeat("x",
		256) + "/stream"}); r.Status != 400 {
		t.Errorf("a long name: %d %s", r.Status, r.Text)
	}
}
