package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestChatNamesAreExact checks that the members of chat messages match by exact name: a member that
// another parser of the same JSON would ignore is ignored here as well.
func TestChatNamesAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for path, body := range map[string]string{
		apitest.CompletionsPath: `{"model":"demo","messages":[{"ROLE":"user","content":"x"}]}`,
		apitest.ResponsesPath:   `{"model":"demo","input":[{"role":"user","Content":"x"}]}`,
		apitest.UIChatPath:      `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","TEXT":"x"}]}]}`,
	} {
		if r := s.Get(t, apitest.Call{Path: path, Body: body}); r.Status != 400 || r.Code != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", path, r.Status, r.Text)
		}
	}
}

// TestApprovalAnswersAreExact checks that an answer to an approval is unambiguous: a repeated
// member is rejected, and a misspelled one neither allows the call nor overrides the exact one.
func TestApprovalAnswersAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	chatQuestion := apitest.FrameField(s.Stream(t, apitest.UIMessage("c", apitest.GatedCommand)), "approvalId")
	runQuestion, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", apitest.GatedCommand)))
	before := s.State(t)
	for range 4 { // a call that runs by mistake ends
		s.Gate.Leave <- struct{}{}
	}
	answerChat := func(members string) apitest.Call {
		return apitest.UIChat("c", apitest.UISubmitted, apitest.UIUser("m1", "x"),
			apitest.UIAssistant("a1", fmt.Sprintf(`{"id":%q,%s}`, chatQuestion, members)))
	}
	answerRun := func(members string) apitest.Call {
		return apitest.AGUIResume("t", runQuestion, `"status":"resolved","payload":{`+members+`}`)
	}
	for _, answer := range []func(string) apitest.Call{answerChat, answerRun} {
		if r := s.Get(t, answer(`"approved":false,"approved":true`)); r.Status != 400 || r.Code != "INVALID_JSON" ||
			!strings.Contains(r.Text, "appears twice") {
			t.Errorf("approved twice: %d %s", r.Status, r.Text)
		}
	}
	if r := s.Get(t, answerChat(`"Approved":true`)); r.Status != 400 || r.Code != "INVALID_REQUEST" {
		t.Errorf("Approved in a chat: %d %s", r.Status, r.Text)
	}
	if code, _ := apitest.FrameRefusal(t, s.Stream(t, answerRun(`"Approved":true`))); code != "INVALID_REQUEST" {
		t.Errorf("Approved in a run: %s", code)
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	for _, answer := range []func(string) apitest.Call{answerChat, answerRun} {
		s.Stream(t, answer(`"approved":false,"APPROVED":true`))
	}
	if len(s.Gate.Entered) != 0 {
		t.Errorf("%d denied calls ran", len(s.Gate.Entered))
	}
}
