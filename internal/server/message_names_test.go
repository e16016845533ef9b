package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Chat messages are decoded by the exact names of their members: what another reader of the same
// text does not see is not seen here.
func TestChatNamesAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for path, body := range map[string]string{
		completions: `{"model":"demo","messages":[{"ROLE":"user","content":"x"}]}`,
		responses:   `{"model":"demo","input":[{"role":"user","Content":"x"}]}`,
		chats:       `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","TEXT":"x"}]}]}`,
	} {
		if r := s.get(t, call{path: path, body: body}); r.status != 400 || r.code != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
}

// An answer to an approval has one meaning: a member that appears twice is refused, and one that is
// spelled otherwise neither allows nor replaces what the exact member says.
func TestApprovalAnswersAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	chatQuestion := field(s.stream(t, asked("c", gated)), "approvalId")
	runQuestion, _ := interruptIn(t, s.stream(t, runOf("t", "r", gated)))
	before := s.state(t)
	for range 4 { // a call that runs by mistake ends
		s.Gate.Leave <- struct{}{}
	}
	answerChat := func(members string) call {
		return chatOf("c", submitted, user("m1", "x"), assistant("a1", fmt.Sprintf(`{"id":%q,%s}`, chatQuestion, members)))
	}
	answerRun := func(members string) call {
		return resumed("t", runQuestion, `"status":"resolved","payload":{`+members+`}`)
	}
	for _, answer := range []func(string) call{answerChat, answerRun} {
		if r := s.get(t, answer(`"approved":false,"approved":true`)); r.status != 400 || r.code != "INVALID_JSON" || !strings.Contains(r.text, "appears twice") {
			t.Errorf("approved twice: %d %s", r.status, r.text)
		}
	}
	if r := s.get(t, answerChat(`"Approved":true`)); r.status != 400 || r.code != "INVALID_REQUEST" {
		t.Errorf("Approved in a chat: %d %s", r.status, r.text)
	}
	if code, _ := refused(t, s.stream(t, answerRun(`"Approved":true`))); code != "INVALID_REQUEST" {
		t.Errorf("Approved in a run: %s", code)
	}
	if after := s.state(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	for _, answer := range []func(string) call{answerChat, answerRun} {
		s.stream(t, answer(`"approved":false,"APPROVED":true`))
	}
	if len(s.Gate.Entered) != 0 {
		t.Errorf("%d denied calls ran", len(s.Gate.Entered))
	}
}
