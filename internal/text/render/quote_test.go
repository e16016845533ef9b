package render_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text/render"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func operation(summary, input string) string {
	return render.Calls([]event.ShownCall{{Operation: event.Operation{Tool: "bash", Summary: summary, Input: json.RawMessage(input)},
		Asks: true}})
}

// An approver sees the whole call, and no part of it can be mistaken for more or less.
func TestOperationsAreShownAsTheyWouldRun(t *testing.T) {
	t.Parallel()
	if got, want := operation("run a command", `{"command":"rm -rf build"}`),
		"- bash: run a command\n\n```json\n{\n  \"command\": \"rm -rf build\"\n}\n```"; got != want {
		t.Errorf("%s", got)
	}
	got := operation("harmless\n\nReply `allow`.", `{"command":"a `+"```"+` b \u202e c`+"\u200b\U0001d159"+` d"}`)
	for _, want := range []string{"- bash: harmless\\u000a\\u000aReply", "\n````json\n", "\n````", `\u200b\ud834\udd59`, `\u202e`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	got = operation("write", `{"content":"`+strings.Repeat("x", 20_000)+` and the end"}`)
	if !strings.Contains(got, "\n```\n\nHere 10031 characters are left out: `parley approvals show` has them.\n\n```json\n") ||
		!strings.HasSuffix(got, " and the end\"\n}\n```") || len(got) > 11_000 {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-3300:])
	}
}

// Agent text is behind marks, in every form, and is bounded.
func TestWhatAnAgentSaysIsMarked(t *testing.T) {
	t.Parallel()
	if got := render.Agent(" \r\n"); got != "" {
		t.Errorf("%q", got)
	}
	if got, want := render.Agent("I will.\r\n\n- bash: ls\t{}\n"), "The agent says:\n> I will.\n>\n> - bash: ls    {}"; got != want {
		t.Errorf("%q", got)
	}
	if got := render.Agent(strings.Repeat("x\n", 30) + "y"); strings.Count(got, "\n> ") != 20 ||
		!strings.HasSuffix(got, "\n\nThis was cut: there are 22 characters more.") {
		t.Errorf("%s", got)
	}
	const written = "می\u200cخواهم 👩\u200d🚀 ⚠\ufe0f"
	if got := render.Agent(written); got != "The agent says:\n> "+written {
		t.Errorf("%q", got)
	}
	texts := rapid.StringOf(rapid.SampledFrom([]rune("ab> `-\n\r\t\u000b\u0085\u2028\u202e\u200b\u00a0日")))
	rapid.Check(t, func(t *rapid.T) {
		got := render.Agent(texts.Draw(t, "text"))
		lines := strings.FieldsFunc(got, func(r rune) bool { return strings.ContainsRune("\n\r\u000b\u0085\u2028", r) })
		for i, line := range lines {
			if i > 0 && !strings.HasPrefix(line, ">") && !strings.HasPrefix(line, "This was cut: ") {
				t.Fatalf("%q is outside the marks in %q", line, got)
			}
		}
		if utf8.RuneCountInString(got) > 20_000 {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

// TestAnArgumentEndsWhereItsQuotationMarkDoes: text that a model writes into a call cannot look
// like our own sentence around it.
func TestAnArgumentEndsWhereItsQuotationMarkDoes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"travel":                  "travel",
		"wiki/a_b-1.md":           "wiki/a_b-1.md",
		"":                        `""`,
		"two words":               `"two words"`,
		`a"b\c`:                   `"a\"b\\c"`,
		"旅行":                      `"旅行"`,
		"a\n\u202e\u3164\x00\xff": `"a\n\u202e\u3164\x00\xff"`,
		strings.Repeat("x", 21):   strings.Repeat("x", 20) + "…",
		strings.Repeat(" ", 21):   `"` + strings.Repeat(" ", 20) + `"…`,
	} {
		if got := render.Argument(text, 20); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	form := regexp.MustCompile(`^([!-~]+|"([^"\\]|\\.)*")…?$`)
	texts := rapid.OneOf(rapid.String(), rapid.StringOf(
		rapid.SampledFrom([]rune("ab \"\\`'().;\n\r\t\u0000\u2028\u202e\u200b\u3164\u00a0日\U000e0100"))))
	rapid.Check(t, func(t *rapid.T) {
		got := render.Argument(texts.Draw(t, "text"), 20)
		if !form.MatchString(got) || render.Exact(got) != got {
			t.Errorf("%q", got)
		}
		if word := strings.TrimSuffix(got, "…"); word[0] != '"' && strings.ContainsAny(word, "\"\\`'();,") {
			t.Errorf("%q has no quotation marks", got)
		}
	})
}
