package agent_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// structured lets a provider answer with replies, in order, to a request for an object with an
// integer n. It returns the events and the requests.
func structured(t *testing.T, replies ...modeltest.Reply) (bodies []event.Body, requests []modeltest.Request, err error) {
	t.Helper()
	next := 0
	script := &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
		r := replies[min(next, len(replies)-1)]
		next++
		return r
	}}
	provider := modeltest.OpenAI(script)
	defer provider.Close()
	a := &agent.Agent{Model: openai.New(openai.Config{Model: "gpt-5-mini", APIKey: "k", BaseURL: provider.URL + "/v1",
		HTTPClient: provider.Client()}),
		MaxTurns: 10, Log: slog.New(slog.DiscardHandler),
		Output: &agent.Output{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
			Check: func(raw json.RawMessage) []string {
				var v struct{ N *int }
				if json.Unmarshal(raw, &v) != nil || v.N == nil {
					return []string{"/n must be an integer."}
				}
				return nil
			}}}
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "how many?"}})
	for group, e := range a.Run(t.Context(), agent.Conversation{Log: j.log}) {
		if e != nil {
			err = e
			break
		}
		bodies = append(bodies, group...)
	}
	return bodies, script.Requests(), err
}

func final(input string) modeltest.Reply {
	return modeltest.Reply{Calls: []modeltest.Call{{ID: "f", Tool: "final_answer", Input: input}}, Usage: &model.Usage{InputTokens: 1}}
}

func said(text string) modeltest.Reply {
	return modeltest.Reply{Text: []string{text}, Usage: &model.Usage{InputTokens: 1}}
}

func TestStructuredAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies  []modeltest.Reply
		requests int
		text     string
	}{
		"called for at once":        {[]modeltest.Reply{final(`{"n": 3}`)}, 1, ""},
		"forced after prose":        {[]modeltest.Reply{said("It is three."), said(`{"n":3}`)}, 2, "It is three."},
		"written unasked":           {[]modeltest.Reply{said(` {"n":3}`)}, 1, ""},
		"written as code":           {[]modeltest.Reply{said("```json\n{\"n\":3}\n```\n")}, 1, ""},
		"written unasked, wrongly":  {[]modeltest.Reply{said(`{"n":[]}`), said(`{"n":3}`)}, 2, ""},
		"written behind a sentence": {[]modeltest.Reply{said("It is three: {\"n\":3}\nAnything else?"), said(`{"n":3}`)}, 2, "It is three: "},
		"written as code, behind": {[]modeltest.Reply{said("Here you are:\n```json\n{\"n\":3}\n```\n"), said(`{"n":3}`)}, 2,
			"Here you are:\n"},
		"cut off": {[]modeltest.Reply{said("Here you are: {\"n\":"), said(`{"n":3}`)}, 2, "Here you are: "},
		"brackets that are no JSON": {[]modeltest.Reply{said("See [1], {name} and `map[int]`, ```x```."), said(`{"n":3}`)}, 2,
			"See [1], {name} and `map[int]`, ```x```."},
		"repaired by the tool":       {[]modeltest.Reply{final(`{"n":"x"}`), final(`{"n":3}`)}, 2, ""},
		"repaired when it is forced": {[]modeltest.Reply{said("Three."), said(`{"n":"x"}`), said(`nonsense`), said(`{"n":3}`)}, 4, "Three."},
	} {
		bodies, requests, err := structured(t, c.replies...)
		if err != nil || len(requests) != c.requests || text(bodies) != c.text {
			t.Errorf("%s: %d requests, text %q, %v", name, len(requests), text(bodies), err)
			continue
		}
		last, ok := bodies[len(bodies)-1].(event.Structured)
		if !ok || string(last.Result) != `{"n":3}` {
			t.Errorf("%s: the last event is %+v", name, bodies[len(bodies)-1])
		}
		for _, b := range bodies {
			if b.Kind() == event.KindToolUse || b.Kind() == event.KindToolResult {
				t.Errorf("%s: shows %+v", name, b)
			}
		}
		if name == "repaired by the tool" && !strings.Contains(string(requests[1].Body), "/n must be an integer.") {
			t.Errorf("the second request does not contain the violation: %s", requests[1].Body)
		}
	}
}

// The turn fails if a model's answers never conform; none of them is accepted.
func TestAnswerThatNeverFits(t *testing.T) {
	t.Parallel()
	for _, reply := range []modeltest.Reply{said(`{"n":"never"}`), final(`{"n":"never"}`)} {
		bodies, requests, err := structured(t, reply)
		failure, ok := err.(*agent.Failure)
		if !ok || failure.Code != event.StructuredOutputInvalid || len(requests) > 5 {
			t.Errorf("%d requests, %v", len(requests), err)
		}
		for _, b := range bodies {
			if b.Kind() == event.KindStructured || b.Kind() == event.KindText {
				t.Errorf("shown: %+v", b)
			}
		}
	}
}
