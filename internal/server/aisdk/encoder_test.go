package aisdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/apitest"
)

const whileHeld = "start start-step text-start text-delta text-end tool-input-available"

func TestChat(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	res := s.Do(t, apitest.UIMessage("c1", "count to 3"))
	if res.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" {
		t.Errorf("%v", res.Header)
	}
	list, _ := apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); got != "start start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
	again := s.Stream(t, apitest.UIMessage("c1", "count to 2"))
	if one, two := apitest.FrameSession(t, list), apitest.FrameSession(t, again); one != two {
		t.Errorf("one chat is the sessions %s and %s", one, two)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, apitest.UIMessage("c1",
		"@error model_error"))); got != "start start-step error finish-step finish [DONE]" {
		t.Errorf("a failure: %s", got)
	}
	for name, body := range map[string]string{
		"nothing":   `{"id":"c1"}`,
		"no text":   `{"id":"c1","messages":[{"role":"user","parts":[]}]}`,
		"a file":    `{"id":"c1","messages":[{"role":"user","parts":[{"type":"file","mediaType":"image/png","url":"data:"}]}]}`,
		"no answer": `{"id":"c1","messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`,
		"an id":     `{"id":"c1\ud800","messages":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`,
	} {
		if r := s.Get(t, apitest.Call{Path: apitest.UIChatPath, Body: body}); r.Status != 400 || r.Code != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
}

// TestChatIsResumed checks that a resumed stream sends the whole turn so far, and then the rest.
func TestChatIsResumed(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	resume := apitest.Call{Path: apitest.UIChatPath + "/c1/stream"}
	if r := s.Get(t, resume); r.Status != 204 {
		t.Errorf("a new chat: %d", r.Status)
	}
	for _, id := range []string{"%00", "%ff", "a%00b", strings.Repeat("x", 256)} {
		if r := s.Get(t, apitest.Call{Path: apitest.UIChatPath + "/" + id + "/stream"}); r.Status != 400 || r.Code != "INVALID_REQUEST" {
			t.Errorf("%.20s: %d %s", id, r.Status, r.Text)
		}
	}
	s.Do(t, apitest.UIMessage("c1", apitest.HeldCommand)).Body.Close()
	s.Gate.Await(t)
	res := s.Do(t, resume)
	head := s.Do(t, apitest.Call{Method: http.MethodHead, Path: resume.Path})
	if head.StatusCode != 200 {
		t.Errorf("HEAD: %d", head.StatusCode)
	}
	s.Gate.Leave <- struct{}{}
	list, ok := apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); !ok || got != whileHeld+
		" tool-output-available finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
	if r := s.Get(t, resume); r.Status != 204 {
		t.Errorf("an idle chat: %d", r.Status)
	}
}

func TestChatApprovals(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	for _, approved := range []bool{true, false} {
		chat := fmt.Sprint(approved)
		list := s.Stream(t, apitest.UIMessage(chat, "@call gate {}\n@say the end"))
		if got := apitest.FrameTypes(t, list); got != "start start-step tool-input-available tool-approval-request finish-step finish [DONE]" {
			t.Fatalf("%s", got)
		}
		id := apitest.FrameField(list, "approvalId")
		if again := s.Stream(t, apitest.Call{Path: apitest.UIChatPath + "/" + chat + "/stream"}); strings.Join(again,
			"\n") != strings.Join(list, "\n") {
			t.Errorf("resumed at the question: %v", again)
		}
		for name, forged := range map[string]apitest.Call{
			"another chat's":   apitest.UIAnswer("other", id, true),
			"nobody's":         apitest.UIAnswer(chat, uuid.NewString(), true),
			"a turn's in here": apitest.UIAnswer(chat, apitest.FrameField(list, "messageId"), true),
		} {
			if r := s.Get(t, forged); r.Status != 404 || r.Code != "APPROVAL_NOT_FOUND" {
				t.Errorf("%s approval: %d %s", name, r.Status, r.Text)
			}
		}
		want := "start tool-output-denied finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]"
		if approved {
			s.Gate.Leave <- struct{}{}
			want = "start tool-input-available tool-output-available finish-step start-step text-start text-delta text-end data-usage " +
				"finish-step finish [DONE]"
		}
		for range 2 { // an answer that is sent again is the same answer
			if got := apitest.FrameTypes(t, s.Stream(t, apitest.UIAnswer(chat, id, approved))); got != want {
				t.Errorf("approved %v: %s", approved, got)
			}
		}
		if r := s.Get(t, apitest.UIAnswer(chat, id, !approved)); r.Status != 409 || r.Code != "APPROVAL_ALREADY_DECIDED" {
			t.Errorf("the opposite: %d %s", r.Status, r.Text)
		}
	}
	if len(s.Gate.Entered) != 1 {
		t.Errorf("the tool ran %d times", len(s.Gate.Entered))
	}
}

// TestChatIsResumedBehindAnAnswer checks that a stream resumed after an answer also has the events
// that followed it.
func TestChatIsResumedBehindAnAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id := apitest.FrameField(s.Stream(t, apitest.UIMessage("c1", "@call gate {}\n@say the end")), "approvalId")
	s.Do(t, apitest.UIAnswer("c1", id, true)).Body.Close()
	s.Gate.Await(t)
	res := s.Do(t, apitest.Call{Path: apitest.UIChatPath + "/c1/stream"})
	s.Gate.Leave <- struct{}{}
	list, ok := apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); !ok ||
		got != "start start-step tool-input-available tool-approval-request tool-input-available tool-output-available "+
			"finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
}

// TestExpiredApprovalIsNoDenial checks that an expired approval is not shown as denied, and that
// the call's result states the reason.
func TestExpiredApprovalIsNoDenial(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id := apitest.FrameField(s.Stream(t, apitest.UIMessage("c1", "@call gate {}\n@say the end")), "approvalId")
	if _, err := s.Pool.Exec(t.Context(), "UPDATE approvals SET expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	res := s.Do(t, apitest.Call{Path: apitest.UIChatPath + "/c1/stream"})
	list, ok := apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); !ok || got != "start start-step tool-input-available tool-approval-request tool-output-error "+
		"finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
		t.Errorf("%s", got)
	}
	if got := apitest.FrameField(list, "errorText"); got != "The approval was not answered within 60 minutes, so this was not done." {
		t.Errorf("%q", got)
	}
	if r := s.Get(t, apitest.UIAnswer("c1", id, true)); r.Status != 410 {
		t.Errorf("%d %s", r.Status, r.Text)
	}
}
