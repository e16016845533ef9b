package agui_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/testing/apitest"
)

// thread is the state of an AG-UI client: it appends the events that it receives.
type thread struct {
	id       string
	messages []map[string]any
}

func (c *thread) say(id, text string) {
	c.messages = append(c.messages, map[string]any{"id": id, "role": "user", "content": text})
}

// run returns the client's next request.
func (c *thread) run(t *testing.T, id string, answers ...string) apitest.Call {
	t.Helper()
	messages, err := json.Marshal(c.messages)
	if err != nil {
		t.Fatal(err)
	}
	return apitest.Call{Path: apitest.RunsPath, Body: fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":%s,"resume":[%s]}`, c.id, id,
		messages, strings.Join(answers, ","))}
}

// hear applies the events of a run, as far as they arrived.
func (c *thread) hear(t *testing.T, list []string) {
	t.Helper()
	for _, line := range list {
		var f struct {
			Type, MessageID, ToolCallID, Delta, Content string
			Messages                                    []map[string]any
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(c.messages, func(m map[string]any) bool { return m["id"] == f.MessageID })
		switch f.Type {
		case "MESSAGES_SNAPSHOT":
			c.messages = f.Messages
		case "TEXT_MESSAGE_START":
			if at < 0 {
				c.messages = append(c.messages, map[string]any{"id": f.MessageID, "role": "assistant", "content": ""})
			}
		case "TEXT_MESSAGE_CONTENT":
			c.messages[at]["content"] = c.messages[at]["content"].(string) + f.Delta
		case "TOOL_CALL_START":
			c.messages = append(c.messages, map[string]any{"id": f.ToolCallID, "role": "assistant",
				"toolCalls": []any{map[string]any{"id": f.ToolCallID}}})
		case "TOOL_CALL_RESULT":
			c.messages = append(c.messages, map[string]any{"id": f.MessageID, "role": "tool", "toolCallId": f.ToolCallID, "content": f.Content})
		}
	}
}

func (c thread) copy(t *testing.T) *thread {
	t.Helper()
	text, err := json.Marshal(c.messages)
	if err != nil {
		t.Fatal(err)
	}
	c.messages = nil
	if err := json.Unmarshal(text, &c.messages); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestResumeThatIsSentAgainTellsEachThingOnce interrupts a run that answers an interrupt at each
// frame. The client sends it again with the state that it has by then, and in the end has each
// event once.
func TestResumeThatIsSentAgainTellsEachThingOnce(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	const steps = "@text 3 deltas\n@call gate {}\n@text 3 deltas\n@call gate {}\n@say the end"
	for name, c := range map[string]struct {
		command, answer, beside string
		turns                   int
	}{
		"the answer alone":                   {steps, apitest.AGUIApproves, "", 1},
		"with a message behind it":           {apitest.GatedCommand, apitest.AGUIApproves, "count to 3", 2},
		"with a message in place of it":      {steps, gives, "@text 3 deltas\n@call gate {}", 2},
		"given up":                           {steps, gives, "", 1},
		"with a message of the turn's words": {apitest.GatedCommand, apitest.AGUIApproves, apitest.GatedCommand, 1},
	} {
		client := &thread{id: name}
		client.say("1", c.command)
		list := s.Stream(t, client.run(t, "r"))
		client.hear(t, list)
		id, _ := apitest.FrameInterrupt(t, list)
		if c.beside != "" {
			client.say("2", c.beside)
		}
		if c.answer == apitest.AGUIApproves {
			s.Gate.Leave <- struct{}{}
		}
		asked := client.copy(t)
		list = s.Stream(t, client.run(t, "r2", entry(id, c.answer)))
		if strings.Contains(strings.Join(list, ""), "SNAPSHOT") {
			t.Errorf("%s: a client without messages of the turn: %v", name, list)
		}
		client.hear(t, list)
		for cut := range len(list) + 1 {
			broken := asked.copy(t)
			broken.hear(t, list[:cut])
			again := s.Stream(t, broken.run(t, fmt.Sprint("again", cut), entry(id, c.answer)))
			broken.hear(t, again)
			if diff := cmp.Diff(client.copy(t).messages, broken.copy(t).messages); diff != "" || list[len(list)-1] == "" {
				t.Errorf("%s, broken off after %v (-whole +broken):\n%s", name, list[:cut], diff)
			}
			if was, is := outcome(list), outcome(again); was != is {
				t.Errorf("%s, broken off after %d: ends with %s, not %s", name, cut, is, was)
			}
		}
		var n int
		if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM turns t JOIN sessions s ON s.id = t.session_id WHERE s.caller_id = $1",
			name).Scan(&n); err != nil || n != c.turns {
			t.Errorf("%s: %d turns, want %d, %v", name, n, c.turns, err)
		}
	}
}

// outcome returns how a run ended, without its id.
func outcome(list []string) string {
	_, end, _ := strings.Cut(list[len(list)-1], `"outcome"`)
	return end
}
