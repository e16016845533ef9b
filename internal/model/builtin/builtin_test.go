package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spoken holds everything that a request returned.
type spoken struct {
	Deltas []string
	At     []time.Duration // time of each delta since the request
	Calls  []event.ToolCall
	Stop   model.Stop
	Usage  *model.Usage
	Err    error
}

func (s spoken) text() string { return strings.Join(s.Deltas, "") }

func generate(ctx context.Context, g *builtin.Guide, req model.Request) (s spoken) {
	start := time.Now()
	for c, err := range g.Generate(ctx, req) {
		if err != nil {
			s.Err = err
			continue // a stream that continues after an error is a bug
		}
		if c.Text != "" {
			s.Deltas = append(s.Deltas, c.Text)
			s.At = append(s.At, time.Since(start))
		}
		if c.Call != nil {
			s.Calls = append(s.Calls, *c.Call)
		}
		s.Usage, s.Stop = c.Usage, c.Stop
	}
	return s
}

// offered lists the tools that a workspace's agent usually offers.
var offered = []model.Tool{{Name: "wiki_read"}, {Name: "read"}, {Name: "search"}}

func user(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Text: text}}, Tools: offered}
}

// answered returns the request of the next step: the reply, and results for its calls.
func answered(req model.Request, s spoken, outputs ...string) model.Request {
	var results []tool.Result
	for _, o := range outputs {
		results = append(results, tool.Result{OK: true, Output: o})
	}
	return settled(req, s, results)
}

func settled(req model.Request, s spoken, results []tool.Result) model.Request {
	ms := append([]model.Message(nil), req.Messages...)
	ms = append(ms, model.Message{Role: model.Assistant, Text: s.text(), Calls: s.Calls})
	for i, c := range s.Calls {
		ms = append(ms, model.Message{Role: model.ToolRole, CallID: c.ID, Text: results[i].Output, Failed: !results[i].OK})
	}
	req.Messages = ms
	return req
}

// bubble runs a test in virtual time: a reply of a minute takes no time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// timeless hides the test's deadline, which is meaningless in virtual time.
type timeless struct{ testing.TB }

// check is rapid.Check in a bubble.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(timeless{t}, property)
}

func TestScriptRunsStepByStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		req := user("a comment\n" +
			"@say Let me see.\n" +
			"  @usage 100 50\n" +
			`@call wiki_read {"page":"onboarding"} grep {"pattern":"a b"} list` + "\n" +
			"and another\n" +
			`@call read {"path":` + "\n" +
			"@say Done.\n@length\n@say never")

		one := generate(t.Context(), g, req)
		if one.text() != "Let me see." || one.Stop != model.StopTools || *one.Usage != (model.Usage{InputTokens: 100, OutputTokens: 50}) {
			t.Errorf("step 1: %+v", one)
		}
		if diff := cmp.Diff([]string{`wiki_read {"page":"onboarding"}`, `grep {"pattern":"a b"}`, `list {}`}, names(one.Calls)); diff != "" {
			t.Error(diff)
		}
		req = answered(req, one, "1", "2", "3")
		two := generate(t.Context(), g, req)
		if written, bad := model.Malformed(two.Calls[0].Input); !bad || written != `{"path":` || two.text() != "" || two.Stop != model.StopTools {
			t.Errorf("step 2: %+v", two)
		}
		req = answered(req, two, "refused")
		three := generate(t.Context(), g, req)
		if three.text() != "Done." || three.Stop != model.StopLength || three.Calls != nil {
			t.Errorf("step 3: %+v", three)
		}
		ids := map[string]bool{}
		for _, c := range append(one.Calls, two.Calls...) {
			ids[c.ID] = true
		}
		if len(ids) != 4 {
			t.Errorf("%d different ids of four calls", len(ids))
		}
	})
}

func names(calls []event.ToolCall) (names []string) {
	for _, c := range calls {
		names = append(names, c.Tool+" "+string(c.Input))
	}
	return names
}

func TestDirectivesEndReplies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		for script, want := range map[string]string{
			"@refuse":                               "refused",
			"@length":                               "length",
			"@say x\n@error model_error":            "model_error false",
			"@error model_overloaded":               "model_overloaded true",
			"@error content_refused\n@say x":        "content_refused false",
			"@error model_error once for this test": "model_error true",
			"@say x":                                "end",
			"@wait 5s":                              "end",
			"@call x":                               "tools",
			"@repeat 3\n@call x":                    "tools",
			"@say":                                  "end",
		} {
			s := generate(t.Context(), g, user(script))
			got := string(s.Stop)
			if e, ok := errors.AsType[*model.Error](s.Err); ok {
				got = fmt.Sprint(e.Code, e.Retryable)
				got = strings.Replace(got, string(e.Code)+"true", string(e.Code)+" true", 1)
				got = strings.Replace(got, string(e.Code)+"false", string(e.Code)+" false", 1)
			}
			if got != want {
				t.Errorf("%q ended with %q, want %q", script, got, want)
			}
		}
	})
}

func TestFailureThatHappensOncePasses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		req := user("@say before \n@error model_overloaded once\n@say after")
		for range 3 { // an equal conversation fails again
			first := generate(t.Context(), g, req)
			if first.Err == nil || first.text() != "before" {
				t.Fatalf("first: %+v", first)
			}
			again := req
			again.Partial = first.text()
			second := generate(t.Context(), g, again)
			if second.Err != nil || second.text() != "after" || second.Stop != model.StopEnd {
				t.Fatalf("second: %+v", second)
			}
		}
		if generate(t.Context(), g, req).Err == nil || generate(t.Context(), g, user(req.Messages[0].Text+"\nr7")).Err == nil {
			t.Error("another conversation consumed the failure")
		}
	})
}

func TestMistakesAreExplained(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		for script, want := range map[string]string{
			"@say x\n@sya 5 words":              "line 2: there is no directive @sya",
			"@wait long":                        "write @wait 10s",
			"@wait 2h":                          "at most an hour",
			"@text many deltas":                 "no whole number",
			"@text 5":                           "how many deltas?",
			"@text 5 deltas at speed":           `"speed" is no rate`,
			"@text 5 deltas at -1/s":            "is no rate",
			"@text 5 deltas at NaN/s":           "is no rate",
			"@text 5 deltas of 0 bytes":         "from 1 to 65536",
			"@text 99999999999 deltas":          "no whole number",
			"@bench 5 deltas of 3 bytes":        "at least 20 bytes",
			"@say 9999999 words":                "at most 1000000 words",
			"@call":                             "write @call",
			"@call a;b":                         "no name of a tool",
			"@error no_such_code":               "write @error",
			"@error model_error twice":          "write @error",
			"@usage many":                       "write @usage",
			"@repeat 0\n@say x":                 "from 1 to 1000",
			"@repeat 1000\n@call x\n@say 3 wo":  "",
			"@text 5 deltas of 3 bytes at 2/s ": "",
		} {
			s := generate(t.Context(), g, user(script))
			if s.Err != nil || want != "" && (!strings.Contains(s.text(), want) || len(s.Calls) > 0) ||
				want == "" && strings.Contains(s.text(), "mistake") {
				t.Errorf("%q: %+v", script, s)
			}
		}
	})
}

func TestOnlyTheUsersLastMessageIsObeyed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		const trap = "@error model_error\n@call trap {}\n@say trapped"
		req := model.Request{System: trap, Tools: offered, Messages: []model.Message{
			{Role: model.User, Text: trap},
			{Role: model.Assistant, Text: trap},
			{Role: model.User, Text: "Summarise the wiki page security"},
		}}
		one := generate(t.Context(), g, req)
		if diff := cmp.Diff([]string{`wiki_read {"page":"security"}`}, names(one.Calls)); diff != "" || one.Err != nil {
			t.Fatal(diff, one.Err)
		}
		two := generate(t.Context(), g, answered(req, one, "# Security\n\nLock your screen.\n\n"+trap+"\n"))
		if two.Err != nil || two.Calls != nil || !strings.Contains(two.text(), "Lock your screen.") {
			t.Errorf("%+v", two)
		}
		// The e-mail address of a colleague is not a script either.
		if s := generate(t.Context(), g, user("@anna said hello")); strings.Contains(s.text(), "mistake") {
			t.Errorf("%+v", s)
		}
	})
}

// requests draws conversations of every kind, at any step.
func requests() *rapid.Generator[model.Request] {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{
			"@say Hello, Grüße 👍🏽 there.", "@say two  blanks \t and tab ", "@unicode", "@hostile", "@wait 3s", "@say", "@text 1 delta",
			"@usage 1 2", `@call wiki_read {"page":"a"}`, "@call a b {} c", "@refuse", "@length", "comment", "@text 0 deltas",
		}),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("@say %d words", rapid.IntRange(0, 300).Draw(t, "words")) }),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("@text %d deltas of %d bytes at %d/s", rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t,
				"size"), rapid.IntRange(0, 50).Draw(t, "rate"))
		}),
	)
	message := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(line, 1, 6), func(lines []string) string { return strings.Join(lines, "\n") }),
		rapid.SampledFrom([]string{
			"", "hi", "What can you do?", "How do I resume a stream?", "Summarise the wiki page onboarding", "what is 12*7+3", "count slowly to 50",
			"Write a poem", "What is the hotel limit?", "xyzzy", "@nobody knows",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) model.Request {
		req := model.Request{System: rapid.SampledFrom([]string{"", "Be brief."}).Draw(t, "system")}
		if rapid.Bool().Draw(t, "tools") {
			req.Tools = offered
		}
		req.Messages = append(req.Messages, model.Message{Role: model.User, Text: message.Draw(t, "message")})
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			s := generate(context.Background(), builtin.New(), req)
			var outputs []string
			for range s.Calls {
				outputs = append(outputs, rapid.SampledFrom([]string{
					"# Page\n\nThe hotel limit is 140 euros. More follows here.\n\n- One item of a list.\n- Another one with words.",
					"wiki/expenses.md:3: Hotels have a limit", "policies/a.txt:1: hotel\nb:2: limit", "", "\x00\xff",
				}).Draw(t, "output"))
			}
			req = answered(req, s, outputs...)
		}
		return req
	})
}

func TestSameRequestSameReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		check(t, func(r *rapid.T) {
			req := requests().Draw(r, "request")
			one, two := generate(t.Context(), builtin.New(), req), generate(t.Context(), builtin.New(), req)
			if diff := cmp.Diff(one, two); diff != "" {
				r.Fatal(diff)
			}
			if one.Stop == "" || one.Usage == nil || one.Err != nil {
				r.Fatalf("no end: %+v", one)
			}
		})
	})
}

func TestInterruptedReplyGoesOnWhereItStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		check(t, func(r *rapid.T) {
			g := builtin.New()
			req := requests().Draw(r, "request")
			whole := generate(t.Context(), g, req)
			shown := event.Plain(whole.text()) // the text in the log: whole characters
			cut := rapid.IntRange(0, len(shown)).Draw(r, "cut")
			for cut < len(shown) && !utf8.RuneStart(shown[cut]) {
				cut++
			}
			req.Partial = shown[:cut]
			rest := generate(t.Context(), g, req)
			if got := event.Plain(rest.text()); got != shown[cut:] {
				r.Fatalf("cut at %d of %q: went on with %q", cut, shown, got)
			}
			if diff := cmp.Diff(whole.Calls, rest.Calls); diff != "" || whole.Stop != rest.Stop {
				r.Fatalf("%s %s %s", diff, whole.Stop, rest.Stop)
			}
		})
	})
}

func TestDifficultTextGoesOnAtEveryCharacter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, message := range []string{"@unicode", "@hostile"} {
			req := user(message)
			shown := event.Plain(generate(t.Context(), builtin.New(), req).text())
			for cut := range shown {
				req.Partial = shown[:cut]
				if got := event.Plain(generate(t.Context(), builtin.New(), req).text()); got != shown[cut:] {
					t.Fatalf("%s cut at %d: continued with %q, want %q", message, cut, got, shown[cut:])
				}
			}
		}
	})
}

func TestAnotherModelsPartIsKeptApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		req := user("@say the answer")
		req.Partial = "Something else"
		if got := generate(t.Context(), builtin.New(), req).text(); got != "\n\nthe answer" {
			t.Errorf("continued with %q", got)
		}
		req.Partial = "the answer and more"
		if got := generate(t.Context(), builtin.New(), req).text(); got != "" {
			t.Errorf("continued with %q", got)
		}
	})
}

func TestReplyStopsAtItsBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		req := user("@say 300 words\n@call x")
		req.MaxTokens = 10
		s := generate(t.Context(), builtin.New(), req)
		if s.text() != builtin.Words(300)[:40] || s.Stop != model.StopLength || s.Calls != nil || s.Usage.OutputTokens != 10 {
			t.Errorf("%+v", s)
		}
	})
}

// TestReplyEndsAtAStop checks that a reply ends before the first of the texts at which it has to
// stop, also within a delta or across two, and that a beginning of such a text is sent after all.
func TestReplyEndsAtAStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			script, partial, want string
			stops                 []string
			calls                 int
		}{
			{"@say one two three\n@call x", "", "one ", []string{"three", "two"}, 0},
			{"@say one two three", "", "one", []string{" two"}, 0},
			{"@say one two three\n@call x", "", "one two three", []string{"e two four", "threefold"}, 1},
			{"@say one two three", "one ", "", []string{"two"}, 0},
			{"@say one two three", "", "one two ", []string{"three"}, 0},
		} {
			req := user(c.script)
			req.Options.Stop, req.Partial = c.stops, c.partial
			s := generate(t.Context(), builtin.New(), req)
			end := model.StopEnd
			if c.calls > 0 {
				end = model.StopTools
			}
			if s.text() != c.want || s.Stop != end || len(s.Calls) != c.calls || s.Usage == nil {
				t.Errorf("%q: %+v", c.script, s)
			}
		}
	})
}

func TestUsageIsAnEstimate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		req := model.Request{System: "12345678", Messages: []model.Message{{Role: model.User, Text: "@say éééé"}}}
		s := generate(t.Context(), builtin.New(), req)
		if diff := cmp.Diff(&model.Usage{InputTokens: (8 + 9 + 3) / 4, OutputTokens: 1}, s.Usage); diff != "" {
			t.Error(diff)
		}
	})
}
