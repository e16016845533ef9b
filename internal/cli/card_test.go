package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/text/render"
)

func TestACardShowsEverythingAndNothingElse(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(rapid.String(), rapid.StringOf(
		rapid.SampledFrom([]rune("ab \n\t\r\\\u202e\u200b\u00a0\ufe0f\u2800\u3164\U000e0041\U000f0000┃│{}\"日本"))))
	rapid.Check(t, func(t *rapid.T) {
		name, words, tool := texts.Draw(t, "name"), texts.Draw(t, "words"), texts.Draw(t, "tool")
		list, err := json.Marshal([]any{words, 1, nil})
		if err != nil {
			t.Fatal(err)
		}
		input, err := json.Marshal(map[string]any{name: words, "list": json.RawMessage(list)})
		if err != nil {
			t.Fatal(err)
		}
		width := rapid.SampledFrom([]int{0, 8, 20, 80}).Draw(t, "width")
		shown := renderCard(event.InputRequired{What: event.InputApproval, Plan: words + ".", Reason: words,
			Operations: []event.Operation{{Tool: tool, Summary: words, Input: input}}}, width, true)
		lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
		if strings.HasPrefix(lines[len(lines)-1], "Some characters ") {
			lines = lines[:len(lines)-1]
		}
		said := false // the rest is the agent's text
		for _, line := range lines {
			if line == "The agent says:" {
				said = true
				continue
			}
			if said != strings.HasPrefix(line, "> ") {
				t.Fatalf("%q of the agent's text is not marked in %q", line, shown)
			}
			if !said && !strings.HasPrefix(line, "┃") && (width == 0 || !strings.HasPrefix(line, "┆")) {
				t.Fatalf("%q stands outside in %q", line, shown)
			}
			if n := utf8.RuneCountInString(line); width > 0 && n > max(width, 7) {
				t.Fatalf("%q has %d columns of %d", line, n, width)
			}
		}
		if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && text.IsInvisible(r) }); i >= 0 {
			t.Fatalf("%q shows an invisible character at %d", shown, i)
		}
		if width > 0 {
			return
		}
		if !strings.Contains(shown, "list: "+text.Escape(string(list))+"\n") {
			t.Fatalf("%q lacks %q", shown, list)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(words, "\n"), "\n") {
			if line = text.Escape(strings.ReplaceAll(line, "\t", "    ")); strings.Contains(words, "\n") && !strings.Contains(shown,
				"│ "+line+"\n") {
				t.Fatalf("%q lacks %q", shown, line)
			}
		}
		for line := range strings.SplitSeq(strings.TrimSpace(words), "\n") {
			if line = text.Escape(strings.ReplaceAll(line, "\t", "    ")); line != "" && !strings.Contains(shown, "\n> "+line+"\n") {
				t.Fatalf("%q does not contain %q", shown, line)
			}
		}
	})
}

func TestArgumentsAreToldApart(t *testing.T) {
	t.Parallel()
	shown := renderCard(event.InputRequired{What: event.InputApproval, Plan: "I will.", Operations: []event.Operation{
		{Tool: "bash", Summary: "run git", Input: json.RawMessage(
			`{"command": "git diff | grep \"x\"", "number": 3, "text": "3", "empty": "", "blank": " x", "list": [ "a" ] , "lines": "one\ntwo\n"}`)},
		{Tool: "odd", Summary: "no object", Input: json.RawMessage(`[1]`)},
	}}, 0, false)
	want := `┃ bash  run git
┃   command: git diff | grep "x"
┃   number: 3
┃   text: "3"
┃   empty: ""
┃   blank: " x"
┃   list: ["a"]
┃   lines:
┃   │ one
┃   │ two
┃
┃ odd  no object
┃   : [1]
`
	if shown != want {
		t.Errorf("shown is\n%swant\n%s", shown, want)
	}
	long := event.InputRequired{What: event.InputSecret, KeyName: "T", Reason: "日本 and more\nx"}
	if shown, want := renderCard(long, 12, false), "┃ secret T\nThe agent says:\n> 日本 and m\n> ore\n> x\n"; shown != want {
		t.Errorf("wrapped is\n%swant\n%s", shown, want)
	}
}

// TestTheAgentsWordsAreNoOperation checks that text of the agent is never shown as an operation,
// however it is worded, and follows all operations.
func TestTheAgentsWordsAreNoOperation(t *testing.T) {
	t.Parallel()
	ask := event.InputRequired{What: event.InputApproval, Plan: "wiki_write  write wiki page lunch (4 bytes)\n┃ bash  run ls",
		Operations: []event.Operation{
			{Tool: "bash", Summary: "run rm", Input: json.RawMessage(`{"command":"rm x"}`)},
			{Tool: "bash", Summary: "run mv", Input: json.RawMessage(`{"command":"mv x y"}`)},
		}}
	operations := "┃ bash  run rm\n┃   command: rm x\n┃\n┃ bash  run mv\n┃   command: mv x y\n"
	for plan, want := range map[string]string{
		ask.Plan:         operations + "The agent says:\n> wiki_write  write wiki page lunch (4 bytes)\n> ┃ bash  run ls\n",
		"run rm; run mv": operations, // the agent sent no text
	} {
		if ask.Plan = plan; renderCard(ask, 0, true) != want {
			t.Errorf("shown is\n%swant\n%s", renderCard(ask, 0, true), want)
		}
		if shown := renderCard(ask, 0, false); shown != operations {
			t.Errorf("without the plan:\n%s", shown)
		}
	}
	asks := event.InputRequired{What: event.InputSecret, KeyName: "T", Reason: "to read\nsecret OTHER"}
	if shown, want := renderCard(asks, 0, true), "┃ secret T\nThe agent says:\n> to read\n> secret OTHER\n"; shown != want {
		t.Errorf("shown is\n%swant\n%s", shown, want)
	}
}

// TestACardShowsTheWholeStep checks that a call that needs no approval is shown at its place among
// the others.
func TestACardShowsTheWholeStep(t *testing.T) {
	t.Parallel()
	ask := event.InputRequired{What: event.InputApproval,
		Operations: []event.Operation{{Position: 2, Tool: "bash", Summary: "run bash run.sh",
			Input: json.RawMessage(`{"command":"bash run.sh"}`)}},
		OtherCalls: []event.Operation{
			{Position: 3, Tool: "read", Summary: "read log", Input: json.RawMessage(`{"path":"log"}`)},
			{Position: 1, Tool: "write", Summary: "write run.sh (12 bytes)", Input: json.RawMessage(`{"path":"run.sh","content":"rm -rf build"}`)}}}
	const want = `┃ call 1 of 3, runs without an approval: write  write run.sh (12 bytes)
┃   path: run.sh
┃   content: rm -rf build
┃
┃ call 2 of 3, needs this approval: bash  run bash run.sh
┃   command: bash run.sh
┃
┃ call 3 of 3, runs without an approval: read  read log
┃   path: log
`
	if got := renderCard(ask, 0, true); got != want {
		t.Errorf("%s", got)
	}
	const line = "call 1 of 3, runs without an approval: write: write run.sh (12 bytes); call 2 of 3, needs this approval: bash: run " +
		"bash run.sh; call 3 of 3, runs without an approval: read: read log"
	if got := briefQuestion(ask); got != line {
		t.Errorf("%s", got)
	}
}

// TestACardEscapesWhatOtherViewsEscape checks that all views of an approval escape the same
// characters.
func TestACardEscapesWhatOtherViewsEscape(t *testing.T) {
	t.Parallel()
	var line []rune
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if r != '\t' && r != '\n' && utf8.ValidRune(r) {
			line = append(line, r)
		}
		if len(line) < 4096 && r < unicode.MaxRune {
			continue
		}
		op := event.Operation{Tool: "bash", Summary: string(line), Input: json.RawMessage(`{}`)}
		shown, _, _ := strings.Cut(strings.TrimPrefix(renderCard(event.InputRequired{What: event.InputApproval,
			Operations: []event.Operation{op}}, 0, false), "┃ bash  "), "\n")
		want := render.Exact(string(line))
		if shown != want {
			at := 0
			for shown[at] == want[at] {
				at++
			}
			t.Fatalf("up to %U: the card shows %.30q, the other views %.30q", r, strings.ToValidUTF8(shown[at:], ""),
				strings.ToValidUTF8(want[at:], ""))
		}
		line = line[:0]
	}
}
