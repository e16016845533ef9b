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
	for status, remedy := range map[int]string{401: "OPENAI_API_KEY", 402: "billing", 403: "OPENAI_API_KEY", 404: "OPENAI_BASE_URL", 400: "streams"} {
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
		if want := (logLine{Level: "ERROR", Msg: "the model failed", Provider: "openai", Model: "openai/gpt-5-mini", Status: status, RequestID: "req_42"}); line != want {
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
