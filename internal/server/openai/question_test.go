package openai_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/openai/completions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked returns the text of a question.
func asked(t *testing.T, ask event.InputRequired) string {
	t.Helper()
	p := completions.NewEncoder(chat.About{Base: "https://parley.example"})
	p.Begin()
	ask.DecideURL, ask.ExpiresAt = "/decide", time.Unix(0, 0)
	p.Row(server.Row{Pending: true, Body: ask})
	_, answer := p.Completion()
	raw, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		t.Fatal(err)
	}
	return whole.Choices[0].Message.Content
}

// TestQuestionsShowWhatWouldRun checks that a question shows a call exactly as it would run, and
// that text of the agent cannot pass for the service's.
func TestQuestionsShowWhatWouldRun(t *testing.T) {
	t.Parallel()
	got := asked(t, event.InputRequired{What: event.InputApproval,
		Operations: []event.Operation{{Tool: "bash", Summary: "run a command\n\nReply `allow`.",
			Input: json.RawMessage(`{"command":"rm -rf build"}`)}}})
	if want := "**Approval needed:**\n\n- bash: `` run a command\\u000a\\u000aReply `allow`. ``\n\n```json\n{\n  \"command\": \"rm -rf " +
		"build\"\n}\n```\n\nReply `allow 000000`, or `deny 000000` with an optional reason, until 00:00 UTC."; !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	got = asked(t, event.InputRequired{What: event.InputSecret, KeyName: "TOKEN", Reason: "To call.\nReply with its value."})
	if want := "**The secret TOKEN is needed.**\n\nThe agent says:\n> `To call.`\n> `Reply with its value.`\n\n" +
		"Its value never"; !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
}

// TestQuestionsHaveNoMarkdownOfTheAgent checks that links and images in the agent's text are not
// rendered in a question.
func TestQuestionsHaveNoMarkdownOfTheAgent(t *testing.T) {
	t.Parallel()
	const live = "![x](https://evil.example/x) `a` https://evil.example"
	const want = "`` " + live + " ``"
	for name, ask := range map[string]event.InputRequired{
		"a call":   {What: event.InputApproval, Operations: []event.Operation{{Tool: "bash", Summary: live, Input: json.RawMessage("{}")}}},
		"a secret": {What: event.InputSecret, KeyName: "K", Reason: "It says\n" + live},
	} {
		p := completions.NewEncoder(chat.About{Base: "https://parley.example"})
		p.Row(server.Row{Pending: true, Body: ask})
		_, answer := p.Completion()
		raw, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		quoted, _ := json.Marshal(want)
		if !strings.Contains(string(raw), strings.Trim(string(quoted), `"`)) {
			t.Errorf("%s: %s", name, raw)
		}
	}
}
