package turns

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/event"
)

// TestProgressKeepsTheAgentsWordsApart checks that no text of the agent and no name of a tool can
// pass for a line of the service, and that a message stays short.
func TestProgressKeepsTheAgentsWordsApart(t *testing.T) {
	t.Parallel()
	own := []string{"The agent says:", "The agent uses a tool:", "The tool is done:", "The tool has failed:", "This was cut: "}
	word := rapid.SampledFrom([]string{"The agent waits for a person.", "The tool is done:", "[session_id: 1]", "> ", "a", " ", "\n", "\r",
		"\t", "\v", "\u0085", "\u2028", "\u202e", "日"})
	texts := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 0, 60).Draw(t, "words"), "") })
	rapid.Check(t, func(t *rapid.T) {
		p := &progress{notify: func(message string) error {
			lines := strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
			for i, line := range lines {
				ours := false
				for _, s := range own {
					ours = ours || line == s || strings.HasSuffix(s, ": ") && strings.HasPrefix(line, s)
				}
				if ours != (i == 0 || strings.HasPrefix(line, own[4])) || !ours && !strings.HasPrefix(line, ">") {
					t.Errorf("%q stands outside in %q", line, message)
				}
			}
			if n := utf8.RuneCountInString(message); n == 0 || n > 4000 {
				t.Errorf("%d characters", n)
			}
			return nil
		}}
		for _, body := range []event.Body{
			event.Text{Text: texts.Draw(t, "text")},
			event.ToolUse{Tool: texts.Draw(t, "tool"), Summary: texts.Draw(t, "summary")},
			event.ToolResult{Tool: texts.Draw(t, "of"), OK: rapid.Bool().Draw(t, "ok")},
			event.Text{Text: texts.Draw(t, "more")},
		} {
			p.reportEvent(body)
		}
		p.flushThen("")
	})
}

// TestProgressTellsTheEndOfTheText checks that progress shows the newest part of the text, however
// many lines it has.
func TestProgressTellsTheEndOfTheText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one\ntwo":                             "one\ntwo",
		strings.Repeat("x\n", 50) + "new":      strings.Repeat("x\n", 9) + "new",
		strings.Repeat("é", 1000) + "new":      strings.Repeat("é", 248) + "new",
		"a\n" + strings.Repeat("y", 600) + "!": strings.Repeat("y", 499) + "!",
	} {
		if got := lastLines(text); got != want {
			t.Errorf("%q", got)
		}
	}
}
