package web

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// TestTimelineCutsWaits places the steps of a turn that waited ten minutes for an approval.
func TestTimelineCutsWaits(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)
	turn := &timelineTurn{At: begin, queued: begin, tools: make(map[string]*timelineStep)}
	for _, e := range []struct {
		at   time.Duration
		body event.Body
	}{
		{1 * time.Second, event.Started{}},
		{3 * time.Second, event.Reply{Usage: event.Usage{InputTokens: 2140, OutputTokens: 61}}},
		{3 * time.Second, event.InputRequired{What: event.InputApproval}},
		{603 * time.Second, event.Decision{}},
		{603 * time.Second, event.Started{}},
		{603 * time.Second, event.ToolUse{Tool: "http_request", ToolUseID: "a"}},
		{604 * time.Second, event.ToolResult{Tool: "http_request", ToolUseID: "a"}},
		{607 * time.Second, event.Reply{}},
		{607 * time.Second, event.Done{}},
	} {
		data, err := json.Marshal(e.body)
		if err != nil {
			t.Fatal(err)
		}
		if err := turn.add(event.Event{At: begin.Add(e.at), Kind: e.body.Kind(), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	turn.finish(begin.Add(time.Hour))
	want := []struct {
		name string
		took time.Duration
		x    string
	}{ // the wait of 600 s is shown as 3.5 s, so the axis has 10.5 s
		{"queue", time.Second, "0.00%"}, {"model call 1", 2 * time.Second, "9.52%"}, {"approval", 600 * time.Second, "28.57%"},
		{"queue", 0, "61.90%"}, {"http_request", time.Second, "61.90%"}, {"model call 2", 3 * time.Second, "71.43%"},
	}
	if len(turn.Steps) != len(want) || turn.Word != "Completed" || turn.Cut != "28.57%" {
		t.Fatalf("%d steps, %s, cut at %s", len(turn.Steps), turn.Word, turn.Cut)
	}
	for i, s := range turn.Steps {
		if w := want[i]; s.Name != w.name || s.Took() != w.took || s.X != w.x || s.Running {
			t.Errorf("step %d is %s, %s at %s; want %+v", i, s.Name, s.Took(), s.X, w)
		}
	}
}

// TestTimelineShowsTheContext describes model calls by the window, the cache, masked results and
// summaries.
func TestTimelineShowsTheContext(t *testing.T) {
	t.Parallel()
	turn := &timelineTurn{tools: make(map[string]*timelineStep), catalog: model.NewCatalog([]model.Entry{{Name: "a/b", Window: 10_000}})}
	for _, body := range []event.Body{
		event.Compacted{TokensBefore: 9000, TokensAfter: 4000},
		event.Reply{Usage: event.Usage{Model: "a/b", InputTokens: 4000, CachedInputTokens: 3000}, Sent: &event.Sent{Masked: &event.Place{}}},
		event.Reply{Usage: event.Usage{Model: "a/b", InputTokens: 4000}, Sent: &event.Sent{Window: 5000}},
	} {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := turn.add(event.Event{Kind: body.Kind(), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, s := range turn.Steps {
		got = append(got, s.Detail)
	}
	want := []string{"compacted the conversation from 9,000 to 4,000 tokens",
		"4,000 in, 0 out · 40 % of the window · 75 % cached · old results masked", "4,000 in, 0 out · 80 % of the window"}
	if !slices.Equal(got, want) {
		t.Errorf("the details are %q", got)
	}
}
