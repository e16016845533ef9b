package agent_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

// recorder is the guide with its requests.
type recorder struct {
	*builtin.Guide
	requests *[]model.Request
}

func (r recorder) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	*r.requests = append(*r.requests, req)
	return r.Guide.Generate(ctx, req)
}

// TestSuppliedContext checks that the model gets what the caller supplied in its roles: the
// instructions after those of the workspace, the messages before those of the session.
func TestSuppliedContext(t *testing.T) {
	t.Parallel()
	var requests []model.Request
	temperature := 0.5
	a := &agent.Agent{Model: recorder{builtin.New(), &requests}, Instructions: "The workspace's.", Effort: "low", MaxTurns: 3,
		Log:     slog.New(slog.DiscardHandler),
		Options: model.Options{Temperature: &temperature, MaxTokens: 77, Effort: "high"}}
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "count to 2"}, event.Supplied{Instructions: "The caller's.",
		Messages: []event.SuppliedMessage{
			{Role: "user", Text: "save 42"}, {Role: "assistant",
				Calls: []event.ToolCall{{ID: "a", Tool: "save", Input: json.RawMessage(`{"n":42}`)}}},
			{Role: "tool", Text: "saved", CallID: "a"}, {Role: "assistant", Text: "Saved."},
		}}})
	for budget, want := range map[int][]model.Role{
		1000: {model.User, model.Assistant, model.User, model.Assistant, model.ToolRole, model.Assistant, model.User},
		20:   {model.User}, // what does not fit begins with a message of the user
	} {
		requests = nil
		history := []agent.Past{{Turn: uuid.New(), Message: "earlier", Answer: "answer"}}
		for _, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), History: history, Budget: budget}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got := requests[0]
		var roles []model.Role
		for _, m := range got.Messages {
			roles = append(roles, m.Role)
		}
		if diff := cmp.Diff(want, roles); diff != "" {
			t.Errorf("with %d tokens: %s", budget, diff)
		}
		if at := strings.Index(got.System, "The workspace's."); at < 0 || strings.Index(got.System, "The caller's.") < at ||
			got.MaxTokens != 77 || got.Effort != "high" || *got.Options.Temperature != temperature {
			t.Errorf("%+v", got)
		}
	}
}

// TestUnansweredCallsCanEndATurn lets the time for the results of the caller's tools pass.
func TestUnansweredCallsCanEndATurn(t *testing.T) {
	t.Parallel()
	for _, end := range []bool{true, false} {
		var requests []model.Request
		a := &agent.Agent{Model: recorder{builtin.New(), &requests}, Tools: []tool.Tool{own("mine")}, MaxTurns: 3,
			Log: slog.New(slog.DiscardHandler), MustCall: true, OneCall: true, EndUnanswered: end}
		j := &journal{}
		j.write(t, []event.Body{event.Message{Content: "@call mine {} mine {}\n@say Done."}})
		asked := 0
		for again := true; again; {
			again = false
			for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Budget: 1000}) {
				if err != nil {
					break // with MustCall, the turn uses all its steps
				}
				if q, ok := group[0].(event.ToolRequired); ok {
					if asked++; len(q.Calls) != 1 {
						t.Errorf("%d calls at a time", len(q.Calls))
					}
					outcome := event.Provided
					if asked > 1 {
						outcome = event.Expired
					}
					answerAll(t, j, q, outcome)
					again = true
					break
				}
				j.write(t, group)
			}
		}
		if (len(requests) == 1) != end || !requests[0].MustCall || !requests[0].OneCall || asked < 2 {
			t.Errorf("end %v: %d requests, asked %d times", end, len(requests), asked)
		}
	}
}
