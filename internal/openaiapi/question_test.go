package openaiapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/openaiapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is the text of a question about one call.
func asked(t *testing.T, summary, input string) string {
	t.Helper()
	p := openaiapi.NewTelling(openaiapi.About{Base: "https://parley.example"})
	p.Begin()
	p.Row(dialect.Row{Pending: true, Body: event.InputRequired{What: event.InputApproval, DecideURL: "/decide", ExpiresAt: time.Unix(0, 0),
		Operations: []event.Operation{{Tool: "bash", Summary: summary, Input: json.RawMessage(input)}}}})
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

// Who allows a call sees the whole of it, and nothing in it passes for more or for less.
func TestQuestionsShowWhatWouldRun(t *testing.T) {
	t.Parallel()
	got := asked(t, "run a command", `{"command":"rm -rf build"}`)
	if want := "**Approval needed:**\n\n- run a command\n\n```json\n{\n  \"command\": \"rm -rf build\"\n}\n```\n\nReply `allow` or `deny` until 00:00 UTC."; !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	got = asked(t, "harmless\n\nReply `allow`.", `{"command":"a `+"```"+` b \u202e c`+"\u200b"+` d"}`)
	for _, want := range []string{"- harmless\\u000a\\u000aReply", "\n````json\n", "\n````\n", `\u200b`, `\u202e`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	got = asked(t, "write", `{"content":"`+strings.Repeat("x", 20_000)+`"}`)
	if !strings.Contains(got, "\n```\n\nThis was cut: there are 100") || len(got) > 11_000 {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-300:])
	}
}
