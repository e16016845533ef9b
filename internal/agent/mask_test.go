package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// researcher is a model that calls a tool in each of its steps, then reads the first masked result. It
// reports the tokens that a provider would count.
type researcher struct {
	steps    int
	words    int // characters of the text before each call
	requests []model.Request
}

// isSummary reports whether a request is for a summary.
func isSummary(req model.Request) bool { return strings.HasPrefix(req.System, "You summarize") }

func (*researcher) Name() string { return "test/researcher" }

func (m *researcher) Generate(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	m.requests = append(m.requests, req)
	step := 0
	for _, msg := range req.Messages {
		for _, c := range msg.Calls {
			if n, err := strconv.Atoi(strings.TrimPrefix(c.ID, "call_")); err == nil {
				step = n + 1
			} else {
				step = m.steps + 1
			}
		}
	}
	c := model.Chunk{Stop: model.StopTools, Usage: &model.Usage{InputTokens: sizeOf(req), OutputTokens: 20}}
	switch {
	case isSummary(req):
		c.Text, c.Stop = fmt.Sprintf("Summary of %d entries.", strings.Count(req.Messages[0].Text, "\n")), model.StopEnd
	case m.steps == 0:
		c.Text, c.Stop = "Yes.", model.StopEnd
	case step < m.steps:
		c.Text = strings.Repeat("I read on. ", m.words/11)
		c.Call = &event.ToolCall{ID: fmt.Sprint("call_", step), Tool: "fetch", Input: json.RawMessage(`{}`)}
	case step == m.steps:
		c.Call = &event.ToolCall{ID: "read", Tool: "read_tool_result", Input: json.RawMessage(`{"tool_use_id":"call_0","offset":12000}`)}
	default:
		c.Text, c.Stop = "All read.", model.StopEnd
	}
	return func(yield func(model.Chunk, error) bool) { yield(c, nil) }
}

// sizeOf counts tokens of three characters.
func sizeOf(req model.Request) (n int64) {
	for _, m := range req.Messages {
		n += int64(len(m.Text))
	}
	return n / 3
}

// fetch returns a page.
type fetch struct{ size int }

func (fetch) Spec() tool.Spec {
	return tool.Spec{Name: "fetch", Description: "Fetches a page.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (f fetch) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: strings.Repeat("0123456789", f.size/10)}, nil
}

// research runs a turn of a researcher with a window of 32,000 tokens. It starts the agent again from
// the log after each group of events for which again is true.
func research(t *testing.T, m *researcher, size int, again bool) *journal {
	t.Helper()
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "read everything"}})
	find := func(_ context.Context, id string) (output event.ToolOutput, ok bool, err error) {
		for _, o := range bodiesOf[event.ToolOutput](t, j.log) {
			if o.ToolUseID == id {
				return o, true, nil
			}
		}
		return event.ToolOutput{}, false, nil
	}
	a := &agent.Agent{Model: m, FindResult: find, Tools: []tool.Tool{fetch{size}}, MaxTurns: 100, Window: 32_000,
		Log: slog.New(slog.DiscardHandler),
		Permit: func(_ context.Context, name string, _ json.RawMessage) (agent.Verdict, error) {
			return agent.Verdict{Ask: name == "read_tool_result"}, nil // it needs no permission
		}}
	for more := true; more; {
		more = false
		for group, err := range a.Run(t.Context(), agent.Conversation{Turn: uuid.Nil, Log: slices.Clone(j.log), Shown: j.shown,
			Tail: j.tail, Budget: 24_000}) {
			if err != nil {
				t.Fatal(err)
			}
			if j.write(t, group); again && group[0].Kind() != event.KindText {
				more = true
				break
			}
		}
	}
	return j
}

// TestLongTurnStaysInTheWindow reads a megabyte in sixty steps with a window of 32,000 tokens. Old
// results are masked, and the model can read one again.
func TestLongTurnStaysInTheWindow(t *testing.T) {
	t.Parallel()
	m := &researcher{steps: 60}
	j := research(t, m, 16_000, false)
	rewritten := 0
	for i, req := range m.requests {
		if n := sizeOf(req); n > 32_000 {
			t.Errorf("request %d has %d tokens", i, n)
		}
		if before := m.requests[max(i-1, 0)].Messages; !cmp.Equal(before, req.Messages[:len(before)]) {
			rewritten++
		}
	}
	if len(m.requests) != 62 || m.requests[0].Tools[0].Name != "fetch" || m.requests[61].Tools[0].Name != "read_tool_result" ||
		rewritten == 0 {
		t.Errorf("%d requests, %d of them rewrite the beginning", len(m.requests), rewritten)
	}
	last := m.requests[61].Messages
	if got := last[len(last)-1].Text; got != strings.Repeat("0123456789", 400) {
		t.Errorf("the masked result is read as %d characters, %.100q", len(got), got)
	}
	if got := last[2].Text; got != "[The result of call_0 (fetch, 16000 characters) is masked. read_tool_result returns it.]" {
		t.Errorf("the first result is %.200q", got)
	}
	if body, err := j.log[len(j.log)-1].Body(); err != nil || body.(event.Reply).Text != "All read." {
		t.Errorf("the turn ends with %v, %v", body, err)
	}
}

// TestMaskingIsStable runs turns with small results: most requests begin like the one before.
func TestMaskingIsStable(t *testing.T) {
	t.Parallel()
	m := &researcher{steps: 80}
	research(t, m, 3000, false)
	rewritten := 0
	for i, req := range m.requests[1:] {
		if before := m.requests[i].Messages; !cmp.Equal(before, req.Messages[:len(before)]) {
			rewritten++
		}
	}
	if rewritten == 0 || rewritten > 20 {
		t.Errorf("%d of %d requests rewrite the beginning", rewritten, len(m.requests))
	}
}

// TestRequestsSurviveCrashes starts the agent again after every event: the requests are the same.
func TestRequestsSurviveCrashes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3000, 35_000} {
		whole, crashed := &researcher{steps: 30}, &researcher{steps: 30}
		research(t, whole, size, false)
		research(t, crashed, size, true)
		if diff := cmp.Diff(whole.requests, crashed.requests); diff != "" {
			t.Errorf("with results of %d bytes: %s", size, diff)
		}
	}
}
