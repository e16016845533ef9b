package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
)

// gambler is a model that answers at random: with texts, calls, failures, and rejections of requests
// that are longer than its real window.
type gambler struct {
	*rand.Rand
	window int64
	last   model.Request // the last one that it has answered
}

func (*gambler) Name() string { return "test/gambler" }

func (m *gambler) words(most int) string {
	return strings.Repeat("wörd\u2028 <b>\"", m.IntN(most)/10)
}

func (m *gambler) Generate(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if sizeOf(req) > m.window && !isSummary(req) {
			yield(model.Chunk{}, &model.Error{Code: event.ModelError, Message: "Too long.", TooLong: true})
			return
		}
		if !isSummary(req) {
			m.last = req
		}
		if m.IntN(3) == 0 && !yield(model.Chunk{Text: "Well, " + m.words(200)}, nil) {
			return
		}
		end := model.Chunk{Text: m.words(4000), Stop: model.StopEnd, Usage: &model.Usage{InputTokens: sizeOf(req), OutputTokens: 20}}
		if m.IntN(4) == 0 {
			end.Usage.InputTokens = 0
		}
		switch {
		case isSummary(req):
			end.Text = m.words(1000)
		case req.Output != nil:
			end.Text = `{"n":1}`
		case len(req.Tools) > 0 && m.IntN(4) > 0:
			end.Text, end.Stop = m.words(1500), model.StopTools
			for i := range 1 + m.IntN(2) {
				size := m.IntN(6000)
				if m.IntN(8) == 0 { // longer than the model reads
					size += 9000
				}
				input := fmt.Sprintf(`{"size":%d, "html":"<i>&\u2028"}`, size)
				c := event.ToolCall{ID: fmt.Sprint("call_", m.IntN(20)), Tool: []string{"grow", "own", "unknown",
					"final_answer"}[m.IntN(4)], Input: json.RawMessage(input)}
				if c.Tool != "own" && !yield(model.Chunk{Call: &c}, nil) {
					return
				} else if i == 0 {
					yield(model.Chunk{Reasoning: &model.Reasoning{Provider: m.Name(), Data: json.RawMessage(`{"thought": 1}`)}}, nil)
				}
			}
		}
		yield(end, nil)
	}
}

// grow is a tool whose result has the size that the model chooses.
type grow struct{ caller bool }

func (g grow) Spec() tool.Spec {
	if g.caller {
		return tool.Spec{Name: "own", Schema: json.RawMessage(`{ "type": "object" }`), Caller: true}
	}
	return tool.Spec{Name: "grow", Description: "Grows <b>.", Schema: json.RawMessage(`{ "type": "object" }`), Idempotent: true}
}

func (grow) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	var in struct{ Size int }
	err := json.Unmarshal(c.Input, &in)
	return tool.Result{OK: true, Output: strings.Repeat("\u2029é<", in.Size/3)}, err
}

// game is a session of random turns.
type game struct {
	*rand.Rand
	model   *gambler
	history []agent.Past
	setups  map[string][]byte
}

// agent returns the agent of a turn; a new one has the same configuration.
func (g *game) agent(window int, schema bool) *agent.Agent {
	plain := func(b []byte) ([]byte, error) { return b, nil }
	a := &agent.Agent{Model: g.model, Tools: []tool.Tool{grow{}, grow{true}}, Instructions: "Be <brief>.", Effort: "low", MaxTurns: 12,
		Window:  window,
		Version: new(event.AgentVersion(3)), Log: slog.New(slog.DiscardHandler), Options: model.Options{Seed: new(int64(7))},
		Seal: plain, Open: plain,
		KeepResult: func(_ context.Context, call tool.Call, output string) (string, error) {
			if len(output)%2 == 0 {
				return "", tool.Refusal("The folder is full.")
			}
			return "tool-results/" + call.Tool + "-1.txt", nil
		},
		KeepSetup: func(_ context.Context, digest string, s agent.Setup) error {
			data, err := json.Marshal(s)
			g.setups[digest] = data
			return err
		}}
	if schema {
		a.Output = &agent.Output{Schema: json.RawMessage(`{ "type": "object" }`), Check: func(raw json.RawMessage) []string {
			if !json.Valid(raw) || strings.Contains(string(raw), "size") {
				return []string{"no size"}
			}
			return nil
		}}
	}
	return a
}

// play runs a turn with takeovers at random rows, and returns how often each thing happened.
func (g *game) play(t *testing.T, seen map[string]int) {
	t.Helper()
	j := &journal{}
	c := agent.Conversation{Turn: uuid.New(), History: g.history, Budget: -1}
	message := event.Message{Content: fmt.Sprint("message ", len(g.history), strings.Repeat(" please", g.IntN(300)))}
	first := []event.Body{message}
	if len(g.history) == 0 && g.IntN(2) == 0 {
		first = append(first, event.Supplied{Instructions: "Be kind.",
			Messages: []event.SuppliedMessage{{Role: "user", Text: strings.Repeat("before ", g.IntN(500))}, {Role: "assistant", Text: "Yes."}}})
	}
	j.write(t, first)
	switch g.IntN(4) {
	case 0:
		c.Budget = g.IntN(3000)
	case 1:
		c.Prompt = "the sealed prompt with s3cret"
	case 2:
		c.Files, c.Images = []string{"<attachment>\n\"x\"\n</attachment>"}, []model.Image{{MIME: "image/png", Data: []byte{1, 2}}}
	}
	window, schema := 3000+g.IntN(9000), g.IntN(4) == 0
	g.model.window = int64(window/2 + g.IntN(window))
	var lost *model.Request  // answered, without a row
	var other *model.Request // what another worker would send after the newest row
	for again := true; again; {
		again = false
		c.Log, c.Shown, c.Tail = slices.Clone(j.log), j.shown, j.tail
		for group, err := range g.agent(window, schema).Run(t.Context(), c) {
			if f, ok := errors.AsType[*agent.Failure](err); ok {
				seen[string(f.Code)]++
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			roll, isReply := g.IntN(12), group[0].Kind() == event.KindReply
			if isReply {
				if lost != nil && !cmp.Equal(lost.Messages, g.model.last.Messages) {
					t.Fatalf("a continued turn sends another request: %s", cmp.Diff(lost.Messages, g.model.last.Messages))
				}
				lost = nil
				if other != nil && !cmp.Equal(other.Messages, g.model.last.Messages) {
					t.Fatalf("a worker that continues after the summary sends another request: %s", cmp.Diff(g.model.last.Messages, other.Messages))
				}
			}
			other = nil
			if roll == 0 { // taken over before the commit
				if isReply {
					lost = new(g.model.last)
				}
				seen["takeover"]++
				again = true
				break
			}
			j.write(t, group)
			seen[string(group[0].Kind())]++
			if group[0].Kind() == event.KindCompacted {
				other = g.nextRequest(t, c, j, window, schema)
			}
			if roll == 1 {
				seen["takeover"]++
				again = true
				break
			}
		}
	}
	g.check(t, c, j, schema, seen)
	g.history = append(g.history, agent.Past{Turn: c.Turn, Message: message.Content, Answer: j.text, Log: j.log})
}

// nextRequest returns the request that another worker sends after the rows of a turn; nil: it
// summarizes first.
func (g *game) nextRequest(t *testing.T, c agent.Conversation, j *journal, window int, schema bool) (next *model.Request) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(len(j.log)), 1))
	a := g.agent(window, schema)
	m := &gambler{Rand: random, window: g.model.window}
	a.Model = m
	c.Log, c.Shown, c.Tail = slices.Clone(j.log), j.shown, j.tail
	for group, err := range a.Run(t.Context(), c) {
		if err == nil && group[0].Kind() == event.KindReply {
			next = new(m.last)
		}
		if err != nil || group[0].Kind() != event.KindText {
			break
		}
	}
	return next
}

// check rebuilds the request of each reply of a turn from the rows and the stored setup.
func (g *game) check(t *testing.T, c agent.Conversation, j *journal, schema bool, seen map[string]int) {
	t.Helper()
	sealed := c.Prompt
	c.Log, c.Prompt, c.Budget = j.log, "", -1
	for i, reply := range bodiesOf[event.Reply](t, j.log) {
		var setup agent.Setup
		if err := json.Unmarshal(g.setups[reply.Sent.Setup], &setup); err != nil {
			t.Fatal(err)
		}
		a := setup.Agent()
		sender := g.agent(0, schema) // parts that the turn's row has
		a.Options, a.Open, a.Output, a.Tools = sender.Options, sender.Open, sender.Output, append(a.Tools, grow{true})
		b, ok, err := a.Rebuild(t.Context(), c, i+1)
		if err != nil || !ok {
			t.Fatalf("step %d cannot be rebuilt: %v", i+1, err)
		}
		if b.SHA256 != reply.PromptSHA256 || *reply.AgentVersion != 3 || b.Reply.Usage.Model != "test/gambler" {
			t.Fatalf("step %d of turn %d: the rebuilt request has the hash %s, the recorded one %s; it was sent with %+v", i+1,
				len(g.history), b.SHA256, reply.PromptSHA256, reply.Sent)
		}
		if sealed != "" && strings.Contains(fmt.Sprint(b.Request), "s3cret") {
			t.Fatal("the rebuilt request has the prompt of a skill")
		}
		for name, is := range map[string]bool{"requests": true, "masked": reply.Sent.Masked != nil, "with summary": b.Compacted != nil,
			"partial": reply.Sent.Partial > 0, "cut": reply.Sent.From != nil, "limited": reply.Sent.Window > 0} {
			if is {
				seen[name]++
			}
		}
	}
}

// TestRebuiltRequestsAreThoseSent plays 1,000 random turns, 200 with the race detector: with
// masking, summaries, rejected requests, limited histories, failures and takeovers. The request of
// each reply is rebuilt from the rows and the stored setup alone, and its hash is the recorded one.
func TestRebuiltRequestsAreThoseSent(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int)
	enough := 1000
	if slow.Race {
		enough = 200
	}
	for turns, seed := 0, uint64(1); turns < enough; seed++ {
		random := rand.New(rand.NewPCG(seed, 0))
		g := &game{Rand: random, model: &gambler{Rand: random}, setups: make(map[string][]byte)}
		for range 1 + g.IntN(8) {
			g.play(t, seen)
			turns++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if len(g.setups) > 2 {
			t.Fatalf("%d setups", len(g.setups))
		}
	}
	for name, least := range map[string]int{"requests": 2000, "takeover": 300, "compacted": 100, "masked": 100, "with summary": 100,
		"partial": 50, "cut": 50, "limited": 50, "structured": 20} {
		if seen[name] < least*enough/1000 {
			t.Errorf("%s: only %d", name, seen[name])
		}
	}
	t.Log(seen)
}
