package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
)

// logLine is what operators search for.
type logLine struct {
	Level, Msg, Provider, Model, Err string
	Status                           int
	RequestID                        string `json:"request_id"`
}

// TestProviderFailureIsOneErrorForAdministrators checks the failures that only an administrator can
// end: they are logged once with what a provider's support asks for, and the end user learns no
// detail of the configuration.
func TestProviderFailureIsOneErrorForAdministrators(t *testing.T) {
	t.Parallel()
	for status, remedy := range map[int]string{401: "OPENAI_API_KEY", 402: "billing", 403: "OPENAI_API_KEY", 404: "OPENAI_BASE_URL",
		400: "streams"} {
		srv := modeltest.OpenAI(&modeltest.Script{Replies: []modeltest.Reply{{Status: status, Header: http.Header{"X-Request-Id": {"req_42"}}}}})
		defer srv.Close()
		var out bytes.Buffer
		a := &agent.Agent{Model: openai.New(openai.Config{Model: "gpt-5-mini", APIKey: modeltest.Key, BaseURL: srv.URL + "/v1"}), MaxTurns: 2,
			Log: slog.New(slog.NewJSONHandler(&out, nil))}
		_, err := finish(t, a, &journal{}, "Hi")
		f, ok := errors.AsType[*agent.Failure](err)
		if !ok || f.Message != model.Unavailable || !f.Final || f.Code != event.ModelError {
			t.Errorf("%d: the turn ends with %v", status, err)
		}
		var line logLine
		if err := json.Unmarshal(out.Bytes(), &line); err != nil { // also if there is more than one line
			t.Fatalf("%d: %v in %s", status, err, out.String())
		}
		if !strings.Contains(line.Err, remedy) || strings.Contains(out.String(), modeltest.Key) {
			t.Errorf("%d: logged %s", status, out.String())
		}
		line.Err = ""
		if want := (logLine{Level: "ERROR", Msg: "the model failed", Provider: "openai", Model: "openai/gpt-5-mini", Status: status,
			RequestID: "req_42"}); line != want {
			t.Errorf("%d: logged %+v", status, line)
		}
	}
}

// finish runs an agent on a journal, which may be empty, until it stops. It returns the committed
// events.
func finish(t *testing.T, a *agent.Agent, j *journal, command string) (all []event.Body, err error) {
	t.Helper()
	if len(j.log) == 0 {
		j.write(t, []event.Body{event.Message{Content: command}})
	}
	for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Shown: j.shown, Tail: j.tail, Budget: 1000}) {
		if err != nil {
			return all, err
		}
		all = append(all, group...)
		j.write(t, group)
	}
	return all, nil
}

// TestReasoningIsSealedInTheLog checks a turn whose model reasons before a call: the log has the
// reasoning sealed, the next step returns it to the model, and so does a turn that another process
// continues from the log. It is never shown.
func TestReasoningIsSealedInTheLog(t *testing.T) {
	t.Parallel()
	script := &modeltest.Script{Replies: []modeltest.Reply{
		{Reasoning: []string{"secret thought"}, Calls: []modeltest.Call{{ID: "call_a", Tool: "once", Input: "{}"}}}, {Text: []string{"Done."}}}}
	srv := modeltest.Responses(script)
	defer srv.Close()
	flip := func(b []byte) ([]byte, error) {
		out := bytes.Clone(b)
		for i := range out {
			out[i] ^= 0x5a
		}
		return out, nil
	}
	a := &agent.Agent{Model: openai.New(openai.Config{Model: "gpt-5-mini", BaseURL: srv.URL + "/v1", Responses: true}), MaxTurns: 3,
		Seal: flip, Open: flip,
		Log: slog.New(slog.DiscardHandler), Tools: []tool.Tool{&counter{name: "once", output: "noon", runs: map[string]int{}}}}
	j := &journal{}
	all, err := finish(t, a, j, "Hi")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(j.log, func(e event.Event) bool { return e.Kind == event.KindReply })
	if reply := all[0].(event.Reply); len(reply.Reasoning) == 0 {
		t.Fatal("the reply has no reasoning")
	}
	for _, e := range j.log {
		if strings.Contains(string(e.Data), "thought") {
			t.Errorf("the log shows %s", e.Data)
		}
	}
	again := &journal{log: slices.Clone(j.log[:at+1])}
	if _, err := finish(t, a, again, ""); err != nil {
		t.Fatal(err)
	}
	requests := script.Requests()
	for i, want := range []bool{false, true, true} {
		if has := strings.Contains(string(requests[i].Body), `"encrypted_content":"signature of secret thought"`); has != want {
			t.Errorf("request %d returns the reasoning: %t", i, has)
		}
	}
	if !bytes.Contains(requests[1].Body, []byte(`"prompt_cache_key":"`)) || !bytes.Equal(requests[1].Body, requests[2].Body) {
		t.Errorf("the continued turn asks %s, the first one %s", requests[2].Body, requests[1].Body)
	}
}
