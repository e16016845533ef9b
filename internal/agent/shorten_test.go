package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// reader is a model that calls a tool, then reads a part of its result.
type reader struct {
	calls    []event.ToolCall
	requests []model.Request
}

func (*reader) Name() string { return "test/reader" }

func (m *reader) Generate(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	m.requests = append(m.requests, req)
	step := 0
	for _, msg := range req.Messages {
		step += len(msg.Calls)
	}
	c := model.Chunk{Text: "Done.", Stop: model.StopEnd, Usage: &model.Usage{InputTokens: 1, OutputTokens: 1}}
	if step < len(m.calls) {
		c = model.Chunk{Call: &m.calls[step], Stop: model.StopTools, Usage: c.Usage}
	}
	return func(yield func(model.Chunk, error) bool) { yield(c, nil) }
}

// TestLongResultsAreShortened has a result of 100 KB. The model gets its two ends and its file, and
// reads the middle with read_tool_result: from the file, or from the log without one. A run
// that starts again after each event sends the same requests, and each can be rebuilt.
func TestLongResultsAreShortened(t *testing.T) {
	t.Parallel()
	whole := "begin" + strings.Repeat("0123456789\n", 9000) + "end"
	for _, c := range []struct {
		name, preview, part string
		keep                func(context.Context, tool.Call, string) (string, error)
		read                func(context.Context, string) (string, error)
	}{
		{name: "no folder", preview: "It is not in a file: this server has no folder for it.]", part: "\n[cut here]\n"},
		{name: "full folder", preview: "It is not in a file: The folder is full.]", part: "\n[cut here]\n",
			keep: func(context.Context, tool.Call, string) (string, error) {
				return "", tool.Refusal("The folder is full.")
			}},
		{name: "failure", preview: "It is not in a file: writing it failed.]", part: "\n[cut here]\n",
			keep: func(context.Context, tool.Call, string) (string, error) { return "", errors.New("disk") }},
		{name: "file", preview: "The whole result is in /workspace/tool-results/once-1.txt.]", part: whole[48_000:60_000],
			keep: func(_ context.Context, call tool.Call, output string) (string, error) {
				if call.Tool != "once" || output != whole {
					t.Errorf("%s keeps %d bytes", call.Tool, len(output))
				}
				return "tool-results/once-1.txt", nil
			},
			read: func(_ context.Context, file string) (string, error) { return whole, nil }},
		{name: "removed file", preview: "tool-results/once-1.txt.]", part: "\n[cut here]\n",
			keep: func(context.Context, tool.Call, string) (string, error) { return "tool-results/once-1.txt", nil },
			read: func(context.Context, string) (string, error) { return "", tool.Refusal("gone") }},
		{name: "another file", preview: "tool-results/once-1.txt.]", part: "\n[cut here]\n",
			keep: func(context.Context, tool.Call, string) (string, error) { return "tool-results/once-1.txt", nil },
			read: func(context.Context, string) (string, error) { return strings.Repeat("x", len(whole)), nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var runs [2]*reader
			for i := range runs {
				m := &reader{calls: []event.ToolCall{{ID: "a", Tool: "once", Input: json.RawMessage(`{}`)},
					{ID: "b", Tool: "read_tool_result", Input: json.RawMessage(`{"tool_use_id":"a","offset":48000}`)}}}
				runs[i] = m
				a := &agent.Agent{Model: m, Tools: []tool.Tool{&counter{name: "once", output: whole, idempotent: true,
					runs: map[string]int{}}}, MaxTurns: 9,
					KeepResult: c.keep, ReadResult: c.read, Log: slog.New(slog.DiscardHandler)}
				j := &journal{}
				j.write(t, []event.Body{event.Message{Content: "go"}})
				for more := true; more; {
					more = false
					for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Shown: j.shown, Tail: j.tail, Budget: -1}) {
						if err != nil {
							t.Fatal(err)
						}
						if j.write(t, group); i == 1 && group[0].Kind() != event.KindText {
							more = true
							break
						}
					}
				}
				checkLong(t, a, m, j, whole, c.preview, c.part)
			}
			if diff := cmp.Diff(runs[0].requests, runs[1].requests); diff != "" {
				t.Errorf("after interruptions: %s", diff)
			}
		})
	}
}

func checkLong(t *testing.T, a *agent.Agent, m *reader, j *journal, whole, preview, part string) {
	t.Helper()
	if n := len(m.requests); n != 3 || m.requests[0].Tools[0].Name != "once" || m.requests[1].Tools[0].Name != "read_tool_result" {
		t.Fatalf("%d requests, tools %v", n, m.requests[1].Tools)
	}
	got := m.requests[1].Messages[2].Text
	if len(got) > 4600 || !strings.HasPrefix(got, whole[:3000]+"\n[…]\n"+whole[len(whole)-1000:]+
		"\n[This result has 99008 bytes in 9001 lines. Its beginning and its end are above. ") ||
		!strings.HasSuffix(got, preview+"\n[read_tool_result with the tool_use_id \"a\" returns it in parts.]") {
		t.Errorf("the model reads %d bytes, ending in %q", len(got), got[max(len(got)-300, 0):])
	}
	if got := m.requests[2].Messages[4].Text; !strings.Contains(got, part) || len(got) > tool.MaxOutput {
		t.Errorf("%d bytes are read: %.200q", len(got), got)
	}
	logged := bodiesOf[event.ToolOutput](t, j.log)
	if o := logged[0]; len(logged) != 2 || logged[1].Preview != "" || o.Size != len(whole) ||
		!strings.HasPrefix(whole, o.Output[:48<<10]) || !strings.HasSuffix(whole, o.Output[len(o.Output)-16<<10:]) {
		t.Errorf("the log has %d outputs, the first of %d bytes", len(logged), len(o.Output))
	}
	if shown := bodiesOf[event.ToolResult](t, j.log)[0]; shown.Output != whole[:4000] || !shown.Truncated {
		t.Errorf("the stream shows %d bytes", len(shown.Output))
	}
	for step := 1; step <= 3; step++ {
		b, ok, err := a.Rebuild(t.Context(), agent.Conversation{Log: j.log, Budget: -1}, step)
		if err != nil || !ok || b.SHA256 != b.Reply.PromptSHA256 {
			t.Errorf("step %d is rebuilt as %s, was %s (%v)", step, b.SHA256, b.Reply.PromptSHA256, err)
		}
	}
}

// TestResultsAtTheLimit has results around the limit, in bytes: of characters with three bytes, also
// those that the stream does not shorten.
func TestResultsAtTheLimit(t *testing.T) {
	t.Parallel()
	for bytes, shortened := range map[int]bool{tool.MaxOutput: false, tool.MaxOutput + 2: true} {
		m := &reader{calls: []event.ToolCall{{ID: "a", Tool: "once", Input: json.RawMessage(`{}`)},
			{ID: "b", Tool: "read_tool_result", Input: json.RawMessage(fmt.Sprintf(`{"tool_use_id":"a","offset":%d}`, 10))}}}
		whole := "x" + strings.Repeat("本", bytes/3)
		a := &agent.Agent{Model: m, Tools: []tool.Tool{&counter{name: "once", output: whole, runs: map[string]int{}}}, MaxTurns: 9,
			Log: slog.New(slog.DiscardHandler)}
		j := &journal{}
		if _, err := finish(t, a, j, "go"); err != nil {
			t.Fatal(err)
		}
		if got := m.requests[1].Messages[2].Text; (got != whole) != shortened {
			t.Errorf("of %d bytes, the model reads %d", len(whole), len(got))
		}
		if got := m.requests[2].Messages[4].Text; len(got) > tool.MaxOutput || !strings.HasPrefix(got, "本") {
			t.Errorf("%d bytes are read: %.40q", len(got), got)
		}
	}
}
