package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// openModel returns the model of a turn.
type openModel func(context.Context, uuid.UUID, string) (model.Model, error)

// provider is a model behind the protocol of a provider, with a known price.
func provider(t testing.TB, script *modeltest.Script) openModel {
	t.Helper()
	srv := modeltest.OpenAI(script)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	m := openai.New(openai.Config{Model: "gpt-5-mini", APIKey: "k", BaseURL: srv.URL + "/v1", HTTPClient: srv.Client()})
	return func(context.Context, uuid.UUID, string) (model.Model, error) { return m, nil }
}

// broken is a model that fails with an error of an unknown type.
type broken struct{ model.Model }

func (broken) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { yield(model.Chunk{}, errors.New("the secret plan")) }
}

// TestEveryFailureHasItsCode checks that every failure has one code: in the stream, which ends with
// one done, in the blocking response and in the list of messages. The table also lists which
// failures may succeed on a retry.
func TestEveryFailureHasItsCode(t *testing.T) {
	t.Parallel()
	costly := &modeltest.Script{Replies: []modeltest.Reply{{Calls: []modeltest.Call{{ID: "c", Tool: "look", Input: `{"at":"a"}`}},
		Usage: &model.Usage{InputTokens: 1_000_000, OutputTokens: 1}}}}
	wrong := `"response_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	for code, c := range map[event.Code]struct {
		command string
		fields  []string
		model   openModel
	}{
		event.TimedOut:                {"@text 1 delta\n@wait 1h", []string{`"limits":{"max_response_seconds":1}`}, nil},
		event.MaxTurnsExceeded:        {"@call look {\"at\":\"a\"}\n@text 1 delta", []string{`"limits":{"max_turns":1}`}, nil},
		event.ModelError:              {"@text 1 delta\n@error model_error", nil, nil},
		event.ModelOverloaded:         {"@error model_overloaded", nil, nil},
		event.ContentRefused:          {"@text 1 delta\n@refuse", nil, nil},
		event.StructuredOutputInvalid: {"@repeat 9\n@structured {\"n\":\"x\"}", []string{wrong}, nil},
		event.BudgetExceeded:          {"look it up", []string{`"limits":{"max_cost_usd":0.01}`}, provider(t, costly)},
		event.InternalError:           {"hello", nil, func(context.Context, uuid.UUID, string) (model.Model, error) { return broken{}, nil }},
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			s := startTurns(t, nil, func(cfg *turn.Config) {
				if c.model != nil {
					cfg.Model = c.model
				}
			})
			frames := s.say(t, c.command, c.fields...).rest()
			s.failed(t, frames, code)
			a, r := s.ask(t, body(t, c.command, append(c.fields, `"stream":false`)...))
			if shown := sentenceOf(t, frames); a.ErrorMessage != shown {
				t.Errorf("the blocking response has the sentence %q, and the stream %q", a.ErrorMessage, shown)
			}
			if a.Success || a.Output != nil || a.Error == nil || *a.Error != string(code) || strings.Contains(r.text, "structured_result") {
				t.Errorf("blocking: %s", r.text)
			}
			if list := s.get(t, call{path: "sessions/" + a.SessionID + "/messages"}); !strings.Contains(list.text, `"status":"failed"`) ||
				!strings.Contains(list.text, fmt.Sprintf(`"error":%q`, code)) {
				t.Errorf("the list: %s", list.text)
			}
		})
	}
}

// failed checks the end of a stream.
func (s *service) failed(t *testing.T, frames []frame, code event.Code) {
	t.Helper()
	all := names(frames)
	if !strings.HasSuffix(all, " error done") || strings.Count(all, "done") != 1 || strings.Count(all, "error") != 1 ||
		strings.Contains(all, "structured") {
		t.Fatalf("%s", all)
	}
	var data struct {
		V             int
		Code, Message string
		Recoverable   *bool
	}
	if err := json.Unmarshal([]byte(frames[len(frames)-2].data), &data); err != nil {
		t.Fatal(err)
	}
	if data.V != 1 || data.Code != string(code) || data.Recoverable == nil || *data.Recoverable != code.Recoverable() ||
		data.Message == "" || strings.Contains(data.Message, "plan") {
		t.Errorf("%s", frames[len(frames)-2].data)
	}
}

// TestTurnsThatCannotRunEnd checks that a turn ends if its prompt cannot be opened or if it kills
// every server.
func TestTurnsThatCannotRunEnd(t *testing.T) {
	t.Parallel()
	for code, spoil := range map[event.Code]string{
		event.SkillFailed: `UPDATE turns t SET prompt = (SELECT prompt FROM turns o WHERE o.id <> t.id LIMIT 1)`,
		event.RunnerLost: `INSERT INTO events (session_id, at, delta, ord, turn_id, kind, data)
			SELECT s.id, now(), false, s.last_ord + n, s.turn_id, 'started', '{"v":1,"epoch":1,"node":"1"}' FROM sessions s, generate_series(1, 10) n`,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			s := startTurns(t, nil, func(c *turn.Config) { c.Workers = 0 })
			s.push(t, report)
			message := call{method: "POST", path: "messages", body: `{"skill":"monthly-report","input":{"month":"x"}}`}
			streams := []*stream{s.open(t, message), s.open(t, message)}
			if _, err := s.pool.Exec(t.Context(), spoil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.pool.Exec(t.Context(), `UPDATE sessions SET last_ord = (SELECT max(ord) FROM events WHERE session_id = id), `+
				`last_seq = (SELECT max(seq) FROM events WHERE session_id = id)`); err != nil {
				t.Fatal(err)
			}
			s.replica(t, nil)
			for _, st := range streams {
				s.failed(t, st.rest(), code)
			}
		})
	}
}

// TestLimitsAreNotRaised checks that a message can lower the workspace's limits, but not raise
// them.
func TestLimitsAreNotRaised(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if w := s.Workspace; w.MaxResponseSeconds != 600 || w.MaxTurns != 50 {
		t.Errorf("a new workspace has %d seconds and %d model calls", w.MaxResponseSeconds, w.MaxTurns)
	}
	s.limit(t, workspace.Change{MaxTurns: new(1), MaxResponseSeconds: new(1)})
	if a, r := s.ask(t, body(t, "@call look {\"at\":\"a\"}\n@text 1 delta", `"stream":false`,
		`"limits":{"max_turns":200}`)); a.Error == nil || *a.Error != "max_turns_exceeded" {
		t.Errorf("%s", r.text)
	}
	if a, r := s.ask(t, body(t, "@wait 1h", `"stream":false`, `"limits":{"max_response_seconds":3600}`)); a.Error == nil ||
		*a.Error != "timed_out" {
		t.Errorf("%s", r.text)
	}
}

// sentenceOf returns the message of the error of a stream.
func sentenceOf(t *testing.T, frames []frame) string {
	t.Helper()
	var data struct{ Message string }
	if err := json.Unmarshal([]byte(frames[len(frames)-2].data), &data); err != nil {
		t.Fatal(err)
	}
	return data.Message
}
