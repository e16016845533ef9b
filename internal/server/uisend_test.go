package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/turn"
)

// chat makes what useChat sends, with the messages as they are.
func chatOf(id, rest string, messages ...string) call {
	return call{path: chats, body: fmt.Sprintf(`{"id":%q,%s"messages":[%s]}`, id, rest, strings.Join(messages, ","))}
}

func user(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"role":"user","parts":[{"type":"text","text":%s}]}`, id, quote(text))
}

// assistant is a message with answered approvals.
func assistant(id string, approvals ...string) string {
	parts := []string{`{"type":"step-start"}`, `{"type":"text","text":"x","state":"done"}`}
	for i, a := range approvals {
		parts = append(parts, fmt.Sprintf(`{"type":"dynamic-tool","toolCallId":"c%d","state":"approval-responded","approval":%s}`, i, a))
	}
	return fmt.Sprintf(`{"id":%q,"role":"assistant","parts":[%s]}`, id, strings.Join(parts, ","))
}

func approval(id string, approved bool) string {
	return fmt.Sprintf(`{"id":%q,"approved":%v}`, id, approved)
}

const submitted = `"trigger":"submit-message",`

// The id of a message makes it the same message; who wants another answer says so.
func TestChatMessageIsSentOnce(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	first := chatOf("c1", submitted, user("m1", "count to 3"))
	list := s.stream(t, first)
	for name, c := range map[string]call{
		"the same":              first,
		"with another history":  chatOf("c1", submitted, user("m0", "earlier"), assistant("a0"), user("m1", "count to 3")),
		"with something of its": chatOf("c1", submitted+`"tab":2,`, user("m1", "count to 3")),
	} {
		res := s.do(t, c)
		if again, _ := frames(t, res); strings.Join(again, "\n") != strings.Join(list, "\n") || res.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %v", name, again)
		}
	}
	if n := s.messages(t); n != 1 {
		t.Fatalf("one message became %d", n)
	}
	for i, c := range []call{
		chatOf("c2", submitted, user("m1", "count to 3")),                                         // another chat's
		chatOf("c1", submitted, user("m1", "count to 2")),                                         // edited
		chatOf("c1", submitted+`"messageId":"m1",`, user("m1", "count to 3")),                     // sent again on purpose
		chatOf("c1", submitted+`"messageId":"m1",`, user("m1", "count to 3")),                     // and again
		chatOf("c1", `"trigger":"regenerate-message",`, user("m1", "count to 3")),                 // said once more
		chatOf("c1", `"trigger":"regenerate-message","messageId":"a",`, user("m1", "count to 3")), // likewise
		chatOf("c1", `"trigger":"regenerate-message","messageId":"a",`, user("m1", "count to 3")),
		chatOf("c1", submitted, strings.Replace(user("", "count to 3"), `"id":"",`, "", 1)), // of no name
		chatOf("c1", submitted, strings.Replace(user("", "count to 3"), `"id":"",`, "", 1)),
	} {
		if got := types(t, s.stream(t, c)); got != "start start-step text-start text-delta text-end data-usage finish-step finish [DONE]" || s.messages(t) != i+2 {
			t.Errorf("%s: %s, %d messages", c.body, got, s.messages(t))
		}
	}
	// A double click is one turn, another message is in its way.
	again := chatOf("c3", `"trigger":"regenerate-message",`, user("m1", held))
	s.do(t, again)
	s.Gate.Await(t)
	n := s.messages(t)
	second := s.do(t, again)
	if r := s.get(t, chatOf("c3", submitted, user("m2", "x"))); r.status != 409 || r.code != "TURN_IN_PROGRESS" || !strings.Contains(r.text, "cancel_url") {
		t.Errorf("another message: %d %s", r.status, r.text)
	}
	s.Gate.Leave <- struct{}{}
	if _, ok := frames(t, second); !ok || s.messages(t) != n {
		t.Errorf("a double click: %d messages after %d", s.messages(t), n)
	}
}

func TestChatIsRefusedInItsWords(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for want, c := range map[string]call{
		"id must be a string.":                                            {body: `{"id":7,"messages":[` + user("m", "x") + `]}`},
		"id has more than 255 bytes.":                                     chatOf(strings.Repeat("x", 256), "", user("m", "x")),
		"trigger can be submit-message, regener":                          chatOf("c", `"trigger":"resume-stream",`, user("m", "x")),
		"messages/0/parts has more than 200000":                           chatOf("c", "", user("m", strings.Repeat("x", 200_001))),
		"attachments must be an array.":                                   chatOf("c", `"attachments":7,`, user("m", "x")),
		`A part of the type "file" cannot be rea`:                         chatOf("c", "", strings.Replace(user("m", "x"), `]}`, `,{"type":"file","url":"data:"}]}`, 1)),
		`A part of the type "data-x" cannot be read here. Say it as text`: chatOf("c", "", strings.Replace(user("m", "x"), `]}`, `,{"type":"data-x"}]}`, 1)),
		"messages/1/parts/2/approval/approved mu":                         chatOf("c", "", user("m", "x"), assistant("a", `{"id":"`+uuid.NewString()+`","approved":"yes"}`)),
		"messages/1/parts/2/approval/id is not a":                         chatOf("c", "", user("m", "x"), assistant("a", `{"id":"x","approved":true}`)),
		"messages/1/parts/2/approval must be an ":                         chatOf("c", "", user("m", "x"), assistant("a", `null`)),
	} {
		c.path = chats
		r := s.get(t, c)
		told, _ := r.body["error"].(map[string]any)
		if list, _ := told["violations"].([]any); r.status != 400 || len(list) != 1 || !strings.HasPrefix(fmt.Sprint(told["message"]), want) || strings.Contains(r.text, "caller_id") {
			t.Errorf("%s %d %s", want, r.status, r.text)
		}
	}
	res := s.do(t, chatOf("c", submitted+`"tools":{"a":1},"system":"s","context":[],"webSearch":true,"limits":{"max_turns":3},`, `{"role":"system","parts":[{"type":"text","text":"s"}]}`, user("m", "count to 2")))
	if got := res.Header.Get("X-Parley-Ignored"); res.StatusCode != http.StatusOK || got != "system, tools, webSearch, system messages" {
		t.Errorf("ignored: %d %q", res.StatusCode, got)
	}
}

// An answer is found in the message that goes on, and an old one that lost is not in the way
// of a new one.
func TestChatAnswersAmongOthers(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	one := field(s.stream(t, chatOf("c1", submitted, user("m1", "@call gate {\"n\":1}\n@call gate {\"n\":2}\n@say the end"))), "approvalId")
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: uuid.MustParse(one), Outcome: event.Allowed}); err != nil { // somebody else is quicker
		t.Fatal(err)
	}
	s.Gate.Leave <- struct{}{}
	if r := s.get(t, chatOf("c1", submitted, user("m1", "x"), assistant("a1", approval(one, false)))); r.status != 409 || r.code != "APPROVAL_ALREADY_DECIDED" {
		t.Fatalf("the loser: %d %s", r.status, r.text)
	}
	list := s.stream(t, call{path: chats + "/c1/stream"})
	two := field(list, "approvalId")
	if two == one {
		t.Fatalf("there is no second question: %v", list)
	}
	s.Gate.Leave <- struct{}{}
	// The next message was refused meanwhile, and is still on the page.
	if r := s.get(t, chatOf("c1", submitted, user("m1", "x"), assistant("a1"), user("m2", "and?"))); r.status != 409 || r.code != "TURN_IN_PROGRESS" {
		t.Errorf("a message while it waits: %d %s", r.status, r.text)
	}
	got := types(t, s.stream(t, chatOf("c1", submitted+`"messageId":"a1",`, user("m1", "x"), assistant("a1", approval(one, false), approval(two, true)), user("m2", "and?"))))
	if got != "start tool-input-available tool-output-available finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
}

// Each call of a question has an id and an answer of its own; they run together, where every
// one of them is allowed, or not at all.
func TestChatAnswersEveryCall(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	ask := func(name string) (ids []string) {
		for _, f := range s.stream(t, asked(name, "@call gate {\"n\":1} gate {\"n\":2}\n@say the end")) {
			if id := field([]string{f}, "approvalId"); id != "" {
				ids = append(ids, id)
			}
		}
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Fatalf("two calls are asked about as %v", ids)
		}
		return ids
	}
	say := func(name string, approvals ...string) call {
		return chatOf(name, submitted, user("m1", "x"), assistant("a1", approvals...))
	}
	one := ask("c1")
	before := s.state(t)
	question, _, _ := strings.Cut(one[0], ":")
	for name, approvals := range map[string][]string{
		"one of two":        {approval(one[0], true)},
		"the other":         {approval(one[1], true)},
		"none by its name":  {approval(question, true), approval(question, true)},
		"one of two, twice": {approval(one[0], true), approval(one[0], true)},
	} {
		if r := s.get(t, say("c1", approvals...)); r.status != 400 || r.code != "INVALID_REQUEST" || !strings.Contains(r.text, "answer each of them") || !strings.Contains(r.text, question+":") {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	for _, id := range []string{question + ":3", question + ":0", question + ":", question + ":x"} {
		if r := s.get(t, say("c1", approval(one[0], true), approval(one[1], true), approval(id, true))); r.status != 404 || r.code != "APPROVAL_NOT_FOUND" {
			t.Errorf("%s: %d %s", id, r.status, r.text)
		}
	}
	if after := s.state(t); after != before || len(s.Gate.Entered) != 0 {
		t.Errorf("%s became %s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	if got := types(t, s.stream(t, say("c1", approval(one[0], true), approval(one[1], true)))); !strings.Contains(got, "tool-output-available") || len(s.Gate.Entered) != 2 {
		t.Errorf("both are allowed: %s, %d calls ran", got, len(s.Gate.Entered))
	}
	for i, answers := range [][]bool{{true, false}, {false, true}, {false, false}, {false}} {
		name := fmt.Sprint("d", i)
		ids := ask(name)
		var approvals []string
		for n, ok := range answers {
			approvals = append(approvals, fmt.Sprintf(`{"id":%q,"approved":%v,"reason":"because"}`, ids[n], ok))
		}
		list := s.stream(t, say(name, approvals...))
		if n := strings.Count(strings.Join(list, "\n"), "tool-output-denied"); n != 2 || len(s.Gate.Entered) != 2 {
			t.Errorf("%v: %v, %d calls ran", answers, list, len(s.Gate.Entered))
		}
	}
}

// A call is not edited: what runs is what the agent wants, or nothing.
func TestChatCannotEditACall(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id := field(s.stream(t, asked("c", `@call gate {"big":12345678901234567890,"text":"\ud83d\ude00 <&>","list":[1,{"n":null}]}`+"\n@say the end")), "approvalId")
	part := func(members string, approved bool) call {
		parts := fmt.Sprintf(`{%s,"toolCallId":"c","state":"approval-responded","approval":%s}`, members, approval(id, approved))
		return chatOf("c", submitted, user("m1", "x"), `{"id":"a1","role":"assistant","parts":[`+parts+`]}`)
	}
	say := func(input string, approved bool) call {
		return part(`"type":"dynamic-tool","toolName":"gate","input":`+input, approved)
	}
	s.Gate.Leave <- struct{}{}
	before := s.state(t)
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
		r := s.get(t, part(edited, true))
		e, _ := r.body["error"].(map[string]any)
		if r.status != 400 || e["param"] != "messages/1/parts/0/"+param || !strings.Contains(r.text, "The "+param+" of a call cannot be edited") {
			t.Errorf("%s: %d %s", edited, r.status, r.text)
		}
	}
	if after := s.state(t); after != before {
		t.Fatalf("%s became %s", before, after)
	}
	same := say(`{ "list": [1.0, {"n": null}], "text": "😀 <&>", "big": 12345678901234567000 }`, true) // as JavaScript writes it
	if got := types(t, s.stream(t, same)); !strings.Contains(got, "tool-output-available") {
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
		id = field(s.stream(t, asked(name, "@call gate {}\n@say the end")), "approvalId")
		answered := part(c.part, c.approved)
		answered.body = strings.Replace(answered.body, `"id":"c"`, `"id":`+quote(name), 1)
		if got := types(t, s.stream(t, answered)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// To leave a stream stops nothing; what stops a turn is to delete it.
func TestChatIsCanceled(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	stop := call{method: http.MethodDelete, path: chats + "/c1/stream"}
	for range 2 {
		if r := s.get(t, stop); r.status != 200 || r.text != `{"data":{"canceled":false}}`+"\n" {
			t.Errorf("nothing is in progress: %d %s", r.status, r.text)
		}
		s.stream(t, asked("c1", "count to 2"))
	}
	res := s.do(t, asked("c1", held))
	s.Gate.Await(t)
	if r := s.get(t, stop); r.status != 200 || r.text != `{"data":{"canceled":true}}`+"\n" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if list, ok := frames(t, res); !ok || types(t, list) != whileHeld+" tool-output-error data-usage abort [DONE]" {
		t.Errorf("%v", list)
	}
	if r := s.get(t, call{method: http.MethodDelete, path: chats + "/" + strings.Repeat("x", 256) + "/stream"}); r.status != 400 {
		t.Errorf("a long name: %d %s", r.status, r.text)
	}
}
