package agent_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// background starts a server of background responses, each of which names its number in its text, and
// returns an agent with its model.
func background(t *testing.T, b *modeltest.Background, on modeltest.Reply) *agent.Agent {
	t.Helper()
	b.Reply = func(n int) modeltest.Reply {
		on.Text = []string{fmt.Sprintf("Response %d: ", n), "grüße, ", "one ", "two ", "three."}
		on.Usage = &model.Usage{InputTokens: 10, OutputTokens: 5}
		return on
	}
	srv := b.Serve()
	t.Cleanup(srv.Close)
	return &agent.Agent{Model: openai.New(openai.Config{Model: "gpt-5-mini", APIKey: modeltest.Key, BaseURL: srv.URL + "/v1",
		Background: true}), MaxTurns: 2,
		Log: slog.New(slog.DiscardHandler)}
}

const wholeResponse = "Response 1: grüße, one two three."

// replyOf returns the only reply of a log.
func replyOf(t *testing.T, log []event.Event) event.Reply {
	t.Helper()
	replies := bodiesOf[event.Reply](t, log)
	if len(replies) != 1 {
		t.Fatalf("%d replies", len(replies))
	}
	return replies[0]
}

// TestCutResponsesAreReadAgain cuts the connection in a background response, and then the first reading
// of it: the text is that of the uninterrupted response, which is generated once.
func TestCutResponsesAreReadAgain(t *testing.T) {
	t.Parallel()
	for _, cut := range [][2]int{{1, 9}, {4, 2}, {6, 5}, {8, 8}} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			b := &modeltest.Background{Again: []modeltest.Reply{{Cut: cut[1]}}}
			j := &journal{}
			if _, err := finish(t, background(t, b, modeltest.Reply{Cut: cut[0]}), j, "Hi"); err != nil {
				t.Fatal(err)
			}
			begun, read, canceled := b.Counts()
			if reply := replyOf(t, j.log); j.text != wholeResponse || reply.Text != wholeResponse || reply.Usage.OutputTokens != 5 ||
				begun != 1 || read == 0 || canceled != nil {
				t.Errorf("%q, %+v; %d responses, %d readings, canceled %v", j.text, reply, begun, read, canceled)
			}
		})
	}
}

// TestKilledWorkersReadAgain kills a worker after each of its events. Another one shows the rest of the
// same response, and the hash of the request is that of a worker that was not killed.
func TestKilledWorkersReadAgain(t *testing.T) {
	t.Parallel()
	whole := &journal{}
	if _, err := finish(t, background(t, &modeltest.Background{}, modeltest.Reply{}), whole, "Hi"); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		b := &modeltest.Background{}
		a := background(t, b, modeltest.Reply{})
		j := &journal{}
		j.write(t, []event.Body{event.Message{Content: "Hi"}})
		done := 0
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Budget: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			j.write(t, group)
			if done++; done > n {
				break
			}
		}
		if _, err := finish(t, a, j, ""); err != nil {
			t.Fatal(err)
		}
		begun, _, canceled := b.Counts()
		if reply := replyOf(t, j.log); j.text != wholeResponse || reply.Text != wholeResponse || begun != 1 || canceled != nil ||
			reply.PromptSHA256 != replyOf(t, whole.log).PromptSHA256 {
			t.Errorf("killed after event %d: %q, %+v; %d responses, canceled %v", n, j.text, reply, begun, canceled)
		}
	}
}

// TestLostResponseIsContinued checks a response that the provider no longer has, or that belongs to
// another request: the model continues the text that was shown, and the other response is canceled.
func TestLostResponseIsContinued(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again    []modeltest.Reply
		change   func(*agent.Agent)
		canceled string
	}{
		"gone":          {[]modeltest.Reply{{Status: http.StatusNotFound}}, func(*agent.Agent) {}, "[]"},
		"other request": {nil, func(a *agent.Agent) { a.Instructions = "Be brief." }, "[resp_1]"},
	} {
		b := &modeltest.Background{Again: c.again}
		a := background(t, b, modeltest.Reply{})
		j := &journal{}
		j.write(t, []event.Body{event.Message{Content: "Hi"}})
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Budget: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			if j.write(t, group); group[0].Kind() == event.KindText {
				break
			}
		}
		c.change(a)
		if _, err := finish(t, a, j, ""); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		begun, _, canceled := b.Counts()
		reply := replyOf(t, j.log)
		if j.text != reply.Text || !strings.HasPrefix(j.text, "Response 1: Response 2: grüße") || begun != 2 ||
			fmt.Sprint(canceled) != c.canceled || reply.Sent.Partial != len("Response 1: ") {
			t.Errorf("%s: %q, %+v; %d responses, canceled %v", name, j.text, reply, begun, canceled)
		}
	}
}
