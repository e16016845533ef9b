package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a tool that counts how often each call really runs.
type counter struct {
	name       string
	idempotent bool
	output     string
	runs       map[string]int
}

func (c *counter) Spec() tool.Spec {
	return tool.Spec{Name: c.name, Description: "Counts.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: c.idempotent}
}

func (c *counter) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	c.runs[call.ID]++
	return tool.Result{OK: true, Output: c.output, References: []event.Reference{{Path: c.name, Source: "read"}}}, nil
}

// journal is the log of a turn as the database would store it.
type journal struct {
	log   []event.Event
	shown bool
	tail  string
	text  string // all that was shown
}

func (j *journal) write(t *testing.T, bodies []event.Body) {
	t.Helper()
	for _, b := range bodies {
		if text, ok := b.(event.Text); ok {
			j.tail += text.Text
			j.text += text.Text
			continue
		}
		if b.Kind() == event.KindReply {
			j.shown, j.tail = j.shown || j.tail != "", ""
		}
		data, err := event.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		j.log = append(j.log, event.Event{Kind: b.Kind(), Data: data})
	}
}

const script = "@say I look it up for you, one moment please.\n" +
	`@call once {"n":1} again {"n":2}` + "\n@say And more.\n" +
	`@call once {"n":3}` + "\n@say This was everything.\n"

// pass runs the agent on a journal and kills it at its n-th group of events: right before the
// commit if lost is set, else right after it. With n < 0 the agent finishes. It returns all
// committed events.
func pass(t *testing.T, j *journal, n int, lost bool, tools ...tool.Tool) (bodies []event.Body, finished bool) {
	t.Helper()
	a := &agent.Agent{Model: builtin.New(), Tools: tools, MaxTurns: 10, Log: slog.New(slog.DiscardHandler)}
	for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Shown: j.shown, Tail: j.tail, Budget: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		if n--; n == 0 && lost {
			return bodies, false
		}
		bodies = append(bodies, group...)
		j.write(t, group)
		if n == 0 {
			return bodies, false
		}
	}
	return bodies, true
}

// TestCrashAtEveryEvent kills a turn at each of its events and lets another process continue it. At
// every point, the reader gets the same text, every call has one beginning and one result, and a
// call that may have run does not run again.
func TestCrashAtEveryEvent(t *testing.T) {
	t.Parallel()
	slow.Test(t, "crashes at every event")
	whole, _ := pass(t, started(t), -1, false, &counter{name: "once", runs: map[string]int{}}, &counter{name: "again", idempotent: true,
		runs: map[string]int{}})
	if got, want := text(whole), "I look it up for you, one moment please.\n\nAnd more.\n\nThis was everything."; got != want {
		t.Errorf("the steps are shown as %q, want %q", got, want)
	}
	for _, lost := range []bool{false, true} {
		unknown := 0
		for n := 1; ; n++ {
			once := &counter{name: "once", output: strings.Repeat("ß", 5000), runs: map[string]int{}}
			again := &counter{name: "again", idempotent: true, output: "ok", runs: map[string]int{}}
			j := started(t)
			first, finished := pass(t, j, n, lost, once, again)
			if finished {
				break
			}
			second, _ := pass(t, j, -1, false, once, again)
			all := append(first, second...)
			if diff := cmp.Diff(text(whole), text(all)); diff != "" {
				t.Fatalf("killed at group %d (lost: %v), the text differs:\n%s", n, lost, diff)
			}
			uses, results := calls(all)
			if len(uses) != 3 || len(results) != 3 {
				t.Fatalf("killed at group %d (lost: %v): %d calls began, %d have results", n, lost, len(uses), len(results))
			}
			for id, times := range uses {
				if times != 1 {
					t.Errorf("killed at group %d (lost: %v): call %s has %d starts in the log", n, lost, id, times)
				}
			}
			for id, times := range once.runs {
				if times != 1 {
					t.Errorf("killed at group %d (lost: %v): a call that must run once ran %d times", n, lost, times)
				}
				if !lost && !results[id].OK {
					t.Errorf("killed at group %d: a call that finished has the result %q", n, results[id].Output)
				}
			}
			for _, r := range results {
				if r.OK {
					continue
				}
				unknown++
				if r.Output != "interrupted, outcome unknown" || r.Tool != "once" {
					t.Errorf("killed at group %d (lost: %v): result %q of %s", n, lost, r.Output, r.Tool)
				}
			}
		}
		if unknown == 0 {
			t.Errorf("lost %v: no crash hit a call", lost)
		}
	}
}

// TestBlankStepsAreNotShown lets the model begin with blanks and write only blanks in one step: the
// step has no text, and no separator before the next step.
func TestBlankStepsAreNotShown(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"@text 1 delta of 1 bytes\n@call once\n@say Done.":                       "0\n\nDone.",
		"@call once\n@say Done.":                                                 "Done.",
		"@say Look.\n@call once\n@call again\n@say Done.":                        "Look.\n\nDone.",
		"@say Look.\n@call once\n@error model_overloaded once blank\n@say Done.": "Look.\n\nDone.",
	} {
		j := &journal{}
		j.write(t, []event.Body{event.Message{Content: script}})
		bodies, _ := pass(t, j, -1, false, &counter{name: "once", runs: map[string]int{}}, &counter{name: "again", runs: map[string]int{}})
		if got := text(bodies); got != want {
			t.Errorf("%q is shown as %q, want %q", script, got, want)
		}
	}
	first, j := blank{"\n", " "}, &journal{}
	j.write(t, []event.Body{event.Message{Content: "x"}})
	a := &agent.Agent{Model: first, MaxTurns: 10, Log: slog.New(slog.DiscardHandler)}
	for group, err := range a.Run(t.Context(), agent.Conversation{Log: j.log}) {
		if err != nil || group[0].Kind() == event.KindText {
			t.Errorf("blanks are shown: %v, %v", group, err)
		}
	}
}

// blank is a model whose reply consists of these chunks.
type blank []string

func (blank) Name() string { return "test/blank" }

func (b blank) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for _, text := range b {
			if !yield(model.Chunk{Text: text}, nil) {
				return
			}
		}
		yield(model.Chunk{Stop: model.StopEnd, Usage: &model.Usage{}}, nil)
	}
}

func started(t *testing.T) *journal {
	t.Helper()
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: script}})
	return j
}

func text(bodies []event.Body) string {
	var b strings.Builder
	for _, body := range bodies {
		if t, ok := body.(event.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

func calls(bodies []event.Body) (uses map[string]int, results map[string]event.ToolResult) {
	uses, results = map[string]int{}, map[string]event.ToolResult{}
	for _, body := range bodies {
		switch b := body.(type) {
		case event.ToolUse:
			uses[b.ToolUseID]++
		case event.ToolResult:
			results[b.ToolUseID] = b
		}
	}
	return uses, results
}

func TestOutputIsCutForReadersAndWholeForTheModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		runes     int
		truncated bool
	}{{3999, false}, {4000, false}, {4001, true}} {
		once := &counter{name: "once", output: strings.Repeat("é", c.runes-1) + "\U0001F469", runs: map[string]int{}}
		bodies, _ := pass(t, started(t), -1, false, once, &counter{name: "again", runs: map[string]int{}})
		_, results := calls(bodies)
		whole := ""
		for _, b := range bodies {
			if o, ok := b.(event.ToolOutput); ok {
				whole = o.Output
			}
		}
		for _, r := range results {
			if r.Tool != "once" {
				continue
			}
			if n := len([]rune(r.Output)); r.Truncated != c.truncated || n != min(c.runes, 4000) {
				t.Errorf("%d characters: %d are shown, truncated %v", c.runes, n, r.Truncated)
			}
			if c.truncated && whole != once.output {
				t.Errorf("the model reads %d bytes of %d", len(whole), len(once.output))
			}
		}
	}
}

func TestStoppingTheReaderStopsTheAgent(t *testing.T) {
	t.Parallel()
	once := &counter{name: "once", runs: map[string]int{}}
	a := &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{once}, MaxTurns: 10, Log: slog.New(slog.DiscardHandler)}
	for range a.Run(t.Context(), agent.Conversation{Log: started(t).log}) {
		break
	}
	if len(once.runs) > 0 {
		t.Error("a tool ran after the consumer had stopped")
	}
}

func TestEndOfContextIsReported(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "@say hello\n@wait 1h"}})
	a := &agent.Agent{Model: builtin.New(), MaxTurns: 10, Log: slog.New(slog.DiscardHandler)}
	var last error
	for _, err := range a.Run(ctx, agent.Conversation{Log: j.log}) {
		last = err
		cancel(why)
	}
	if !errors.Is(last, why) {
		t.Errorf("the agent ended with %v", last)
	}
}
