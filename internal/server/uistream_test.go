package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

const chats = "/api/v1/workspaces/demo/ui/chat"

// asked makes what useChat sends for a message.
func asked(chat, text string) call { return askedAs(chat, uuid.NewString(), text) }

// askedAs is asked with an id for the message.
func askedAs(chat, id, text string) call {
	return call{path: chats, body: fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messages":[{"id":%q,"role":"user","parts":[{"type":"text","text":%s}]}]}`, chat, id, quote(text))}
}

// responded makes what useChat sends when somebody has answered an approval.
func responded(chat, approval string, approved bool) call {
	return call{path: chats, body: fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messageId":"m2","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"x"}]},`+
		`{"id":"m2","role":"assistant","parts":[{"type":"step-start"},{"type":"dynamic-tool","toolCallId":"c","state":"approval-responded","approval":{"id":%q,"approved":%v,"reason":"because"}}]}]}`, chat, approval, approved)}
}

// types are the kinds of frames, adjacent ones once.
func types(t *testing.T, list []string) string {
	t.Helper()
	var names []string
	for _, data := range list {
		f := struct{ Type string }{data}
		if data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &f); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
		}
		if n := len(names); n == 0 || names[n-1] != f.Type {
			names = append(names, f.Type)
		}
	}
	return strings.Join(names, " ")
}

// field is the last value that a member has in any frame.
func field(list []string, name string) (value string) {
	for _, data := range list {
		var f map[string]any
		_ = json.Unmarshal([]byte(data), &f)
		if v, ok := f[name].(string); ok {
			value = v
		}
	}
	return value
}

const whileHeld = "start start-step text-start text-delta text-end tool-input-available"

func TestChat(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	res := s.do(t, asked("c1", "count to 3"))
	if res.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" {
		t.Errorf("%v", res.Header)
	}
	list, _ := frames(t, res)
	if got := types(t, list); got != "start start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
	again := s.stream(t, asked("c1", "count to 2"))
	if one, two := sessionIn(t, list), sessionIn(t, again); one != two {
		t.Errorf("one chat is the sessions %s and %s", one, two)
	}
	if got := types(t, s.stream(t, asked("c1", "@error model_error"))); got != "start start-step error finish-step finish [DONE]" {
		t.Errorf("a failure: %s", got)
	}
	for name, body := range map[string]string{
		"nothing":   `{"id":"c1"}`,
		"no text":   `{"id":"c1","messages":[{"role":"user","parts":[]}]}`,
		"a file":    `{"id":"c1","messages":[{"role":"user","parts":[{"type":"file","mediaType":"image/png","url":"data:"}]}]}`,
		"no answer": `{"id":"c1","messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`,
		"an id":     `{"id":"c1\ud800","messages":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`,
	} {
		if r := s.get(t, call{path: chats, body: body}); r.status != 400 || r.code != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
}

// sessionIn reads the session out of the first frame.
func sessionIn(t *testing.T, list []string) string {
	t.Helper()
	var f struct {
		Metadata map[string]string `json:"messageMetadata"`
	}
	if err := json.Unmarshal([]byte(list[0]), &f); err != nil || f.Metadata["session_id"] == "" {
		t.Fatalf("%s: %v", list[0], err)
	}
	return f.Metadata["session_id"]
}

// Who comes back is told the whole turn again, and then the rest.
func TestChatIsResumed(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	resume := call{path: chats + "/c1/stream"}
	if r := s.get(t, resume); r.status != 204 {
		t.Errorf("a new chat: %d", r.status)
	}
	for _, id := range []string{"%00", "%ff", "a%00b", strings.Repeat("x", 256)} {
		if r := s.get(t, call{path: chats + "/" + id + "/stream"}); r.status != 400 || r.code != "INVALID_REQUEST" {
			t.Errorf("%.20s: %d %s", id, r.status, r.text)
		}
	}
	s.do(t, asked("c1", held)).Body.Close()
	s.Gate.Await(t)
	res := s.do(t, resume)
	head := s.do(t, call{method: http.MethodHead, path: resume.path})
	if head.StatusCode != 200 {
		t.Errorf("HEAD: %d", head.StatusCode)
	}
	s.Gate.Leave <- struct{}{}
	list, ok := frames(t, res)
	if got := types(t, list); !ok || got != whileHeld+" tool-output-available finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
	if r := s.get(t, resume); r.status != 204 {
		t.Errorf("an idle chat: %d", r.status)
	}
}

func TestChatApprovals(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	for _, approved := range []bool{true, false} {
		chat := fmt.Sprint(approved)
		list := s.stream(t, asked(chat, "@call gate {}\n@say the end"))
		if got := types(t, list); got != "start start-step tool-input-available tool-approval-request finish-step finish [DONE]" {
			t.Fatalf("%s", got)
		}
		id := field(list, "approvalId")
		if again := s.stream(t, call{path: chats + "/" + chat + "/stream"}); strings.Join(again, "\n") != strings.Join(list, "\n") {
			t.Errorf("resumed at the question: %v", again)
		}
		for name, forged := range map[string]call{
			"another chat's":   responded("other", id, true),
			"nobody's":         responded(chat, uuid.NewString(), true),
			"a turn's in here": responded(chat, field(list, "messageId"), true),
		} {
			if r := s.get(t, forged); r.status != 404 || r.code != "APPROVAL_NOT_FOUND" {
				t.Errorf("%s approval: %d %s", name, r.status, r.text)
			}
		}
		want := "start tool-output-denied finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]"
		if approved {
			s.Gate.Leave <- struct{}{}
			want = "start tool-input-available tool-output-available finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]"
		}
		for range 2 { // the answer that is sent again is the same answer
			if got := types(t, s.stream(t, responded(chat, id, approved))); got != want {
				t.Errorf("approved %v: %s", approved, got)
			}
		}
		if r := s.get(t, responded(chat, id, !approved)); r.status != 409 || r.code != "APPROVAL_ALREADY_DECIDED" {
			t.Errorf("the opposite: %d %s", r.status, r.text)
		}
	}
	if len(s.Gate.Entered) != 1 {
		t.Errorf("the tool ran %d times", len(s.Gate.Entered))
	}
}

// A question that is answered is not the end: who comes back is told what came after it.
func TestChatIsResumedBehindAnAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id := field(s.stream(t, asked("c1", "@call gate {}\n@say the end")), "approvalId")
	s.do(t, responded("c1", id, true)).Body.Close()
	s.Gate.Await(t)
	res := s.do(t, call{path: chats + "/c1/stream"})
	s.Gate.Leave <- struct{}{}
	list, ok := frames(t, res)
	if got := types(t, list); !ok || got != "start start-step tool-input-available tool-approval-request tool-input-available tool-output-available "+
		"finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
}

// Nobody has denied what nobody answered: the call says what became of it.
func TestExpiredApprovalIsNoDenial(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id := field(s.stream(t, asked("c1", "@call gate {}\n@say the end")), "approvalId")
	if _, err := s.Pool.Exec(t.Context(), "UPDATE approvals SET expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	res := s.do(t, call{path: chats + "/c1/stream"})
	list, ok := frames(t, res)
	if got := types(t, list); !ok || got != "start start-step tool-input-available tool-approval-request tool-output-error finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
	if got := field(list, "errorText"); got != "Nobody answered within 60 minutes, so this was not done." {
		t.Errorf("%q", got)
	}
	if r := s.get(t, responded("c1", id, true)); r.status != 410 {
		t.Errorf("%d %s", r.status, r.text)
	}
}
