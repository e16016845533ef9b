package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/wait"
)

// Key is the API key that Suite uses, and searches for in output that must not contain it.
const Key = "sk-top-secret"

// Suite contains the tests of every model, whatever its protocol.
type Suite struct {
	Serve func(*Script) *httptest.Server
	New   func(base string, client *http.Client) model.Model
	// Frames returns the provider's frames of a reply.
	Frames func(Request, Reply) []string
	// The provider's own failures.
	Garbage string // a frame that is not JSON
	Failure func(kind string) string
	// Asked parses a request as the provider does.
	Asked   func(body []byte) Asked
	Reasons bool // the protocol returns reasoning
}

// OpenAISuite is the suite of the Chat Completions protocol.
func OpenAISuite(create func(base string, client *http.Client) model.Model) Suite {
	return Suite{
		Serve: OpenAI, New: create, Frames: openAIFrames,
		Garbage: "data: {\"id\":\"x\",\"choices\":[{\"del " + Key + "\n\n",
		Failure: func(kind string) string {
			return Data(object{"error": object{"type": kind, "message": "because of " + Key}})
		},
		Asked: openAIAsked,
	}
}

// ResponsesSuite is the suite of the Responses protocol.
func ResponsesSuite(create func(base string, client *http.Client) model.Model) Suite {
	return Suite{
		Serve: Responses, New: create, Frames: responsesFrames,
		Garbage: "event: response.output_text.delta\ndata: {\"type\":\"response.output_te " + Key + "\n\n",
		Failure: func(kind string) string {
			return Named("response.failed", object{"type": "response.failed", "response": object{"status": "failed",
				"error": object{"code": kind, "message": "because of " + Key}}})
		},
		Asked: responsesAsked, Reasons: true,
	}
}

// AnthropicSuite is the suite of the Messages protocol.
func AnthropicSuite(create func(base string, client *http.Client) model.Model) Suite {
	return Suite{
		Serve: Anthropic, New: create, Frames: anthropicFrames,
		Garbage: "event: content_block_delta\ndata: {\"type\":\"content_block_del " + Key + "\n\n",
		Failure: func(kind string) string {
			return Named("error", object{"type": "error", "error": object{"type": kind, "message": "because of " + Key}})
		},
		Asked: anthropicAsked, Reasons: true,
	}
}

// Run tests all promises, each in a subtest.
func (s Suite) Run(t *testing.T) {
	t.Run("RepliesAreBounded", s.testLargeReplies)
	t.Run("TextSurvivesEveryWayOfSending", s.testText)
	t.Run("CallsAreAssembledFromPieces", s.testCalls)
	t.Run("ReplyNamesItsRequest", s.testRequestID)
	t.Run("ReasoningReturnsToItsModel", s.testReasoning)
	t.Run("MalformedInputsDoNotBreakTheReply", s.testMalformedCalls)
	t.Run("OutputIsTheValueAlone", s.testOutput)
	t.Run("OutputIsAskedForInAnotherWayWhenRefused", s.outputRefused)
	t.Run("OutputOfAnySchema", s.outputWrapped)
	t.Run("ToolsOfAnySchema", s.toolWrapped)
	t.Run("ImagesTravelWithTheirMessage", s.testImages)
	t.Run("FilesTravelOrAreNamed", s.testFiles)
	t.Run("CutRepliesAreRetryableErrors", s.testCutConnections)
	t.Run("BrokenStreamsAreRetryableErrors", s.testBrokenFrames)
	t.Run("FailuresInsideTheStream", s.testErrorInside)
	t.Run("FailuresOverHTTP", s.testStatuses)
	t.Run("NobodyIsFollowedElsewhere", s.testRedirect)
	t.Run("CancellationIsTheContextsError", s.testCanceled)
	t.Run("BreakingOffEndsTheRequest", s.brokenOff)
	t.Run("ManyRepliesAtOnce", s.testParallelCalls)
}

// startModel starts a server with a script and a model that uses it.
func (s Suite) startModel(t *testing.T, script *Script) model.Model {
	t.Helper()
	srv := s.Serve(script)
	t.Cleanup(srv.Close)
	return s.New(srv.URL, srv.Client())
}

func askText(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Text: text}}}
}

var prose = []string{
	"Good ", "morning – ", "", "grüße, ", "日本語", "のテスト ", "👩‍👩‍👧‍👦🇩🇪 ", "\"quoted\" \\ back\\slash\n", "\u2028line\u2029 ", "\ttab\r\n",
	"data: event: done\n\n", "{\"not\":\"json\"", " end.",
}

// waysToSend returns the ways to send the same reply.
func waysToSend(r Reply) map[string]Reply {
	out := map[string]Reply{"whole frames": r}
	for _, n := range []int{1, 2, 3, 7} {
		for _, crlf := range []bool{false, true} {
			w := r
			w.Bytes, w.CRLF, w.KeepAlive = n, crlf, n%2 == 1
			out[fmt.Sprintf("%d bytes crlf=%t", n, crlf)] = w
		}
	}
	return out
}

func (s Suite) testText(t *testing.T) {
	t.Parallel()
	usage := &model.Usage{InputTokens: 120, CachedTokens: 100, OutputTokens: 34}
	want := Heard{Text: strings.Join(prose, ""), Usage: usage, Stop: model.StopEnd}
	for name, reply := range waysToSend(Reply{Text: prose, Usage: usage}) {
		m := s.startModel(t, &Script{Replies: []Reply{reply}})
		got, err := Read(m.Generate(t.Context(), askText("hello")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: reply differs (-want +got):\n%s", name, diff)
		}
	}
}

func (s Suite) testCalls(t *testing.T) {
	t.Parallel()
	reply := Reply{
		Text: []string{"I look ", "it up."},
		Calls: []Call{
			{"call_a", "wiki_read", `{"path":"größe/日本語.md","lines":[1,2,3]}`},
			{"call_b", "clock", ``},
			{"call_c", "wiki_search", `{"query":"\"quoted\" 👍","limit":12345678901234567890}`},
		},
	}
	want := Heard{Text: "I look it up.", Stop: model.StopTools, Calls: []event.ToolCall{
		{ID: "call_a", Tool: "wiki_read", Input: json.RawMessage(reply.Calls[0].Input)},
		{ID: "call_b", Tool: "clock", Input: json.RawMessage(`{}`)},
		{ID: "call_c", Tool: "wiki_search", Input: json.RawMessage(reply.Calls[2].Input)},
	}}
	for name, reply := range waysToSend(reply) {
		m := s.startModel(t, &Script{Replies: []Reply{reply}})
		got, err := Read(m.Generate(t.Context(), askText("hello")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: reply differs (-want +got):\n%s", name, diff)
		}
	}
}

// testReasoning sends reasoning back, together with that of another model.
func (s Suite) testReasoning(t *testing.T) {
	t.Parallel()
	if !s.Reasons {
		return
	}
	script := &Script{Replies: []Reply{{Reasoning: []string{"hm ü", "ah"}, Text: []string{"I look."},
		Calls: []Call{{"call_a", "clock", "{}"}}}, {Text: []string{"Noon."}}}}
	m := s.startModel(t, script)
	got, err := Read(m.Generate(t.Context(), askText("hello")))
	if err != nil || len(got.Reasoning) != 2 || got.Text != "I look." {
		t.Fatalf("received %+v, %v", got, err)
	}
	req := askText("hello")
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Text: got.Text, Calls: got.Calls, Reasoning: append(got.Reasoning,
			model.Reasoning{Provider: "another/model", Data: got.Reasoning[0].Data})},
		model.Message{Role: model.ToolRole, CallID: "call_a", Text: "noon"})
	if _, err := Read(m.Generate(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hm ü", "ah"}, s.Asked(script.Requests()[1].Body).Reasoning); diff != "" {
		t.Errorf("reasoning differs (-want +got):\n%s", diff)
	}
}

func (s Suite) testRequestID(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"X-Request-Id", "Request-Id"} {
		script := &Script{Replies: []Reply{{Text: []string{"Hi"}, Header: http.Header{header: {"req_42"}}}}}
		got, err := Read(s.startModel(t, script).Generate(t.Context(), askText("hello")))
		if err != nil || got.RequestID != "req_42" {
			t.Errorf("%s: the request is %q, %v", header, got.RequestID, err)
		}
	}
}

func (s Suite) testMalformedCalls(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{"path":`, `[1,2]`, `"text"`, "```json\n{}\n```", `{"a":1}{"b":2}`} {
		m := s.startModel(t, &Script{Replies: []Reply{{Calls: []Call{{"call_a", "read", input}, {"call_b", "read", `{"a":1}`}}}}})
		got, err := Read(m.Generate(t.Context(), askText("hello")))
		if err != nil || len(got.Calls) != 2 {
			t.Fatalf("%s: calls %v, error %v", input, got.Calls, err)
		}
		if written, ok := model.Malformed(got.Calls[0].Input); !ok || written != input {
			t.Errorf("input %q became %s", input, got.Calls[0].Input)
		}
		if string(got.Calls[1].Input) != `{"a":1}` {
			t.Errorf("the call after %q became %s", input, got.Calls[1].Input)
		}
	}
}

func (s Suite) testParallelCalls(t *testing.T) {
	t.Parallel()
	m := s.startModel(t, &Script{Replies: []Reply{{Text: prose}}})
	results := make(chan error)
	const readers = 16
	for range readers {
		go func() {
			got, err := Read(m.Generate(t.Context(), askText("hello")))
			if err == nil && got.Text != strings.Join(prose, "") {
				err = errors.New("another text: " + got.Text)
			}
			results <- err
		}()
	}
	for range readers {
		if err := wait.Receive(t, "a result", results); err != nil {
			t.Error(err)
		}
	}
}
