package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/tool"
)

// remote is a tool of a server that must be connected. The journal tells it whether it is.
type remote struct {
	counter
	j     *journal
	never bool // it rejects the connection
}

func (r *remote) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	for _, ev := range r.j.log {
		if body, err := ev.Body(); err == nil {
			if d, ok := body.(event.Decision); ok && d.Outcome == event.Provided && !r.never {
				return r.counter.Call(ctx, c)
			}
		}
	}
	return tool.Result{}, tool.Connect{Server: "crm"}
}

// TestCallsWaitForAConnectionAtEveryEvent kills a turn whose calls need a connection at each of its
// events. The turn asks once, each call begins once for its readers and runs at most once.
func TestCallsWaitForAConnectionAtEveryEvent(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			j := &journal{}
			far := &remote{counter: counter{name: "far", output: "ok", runs: map[string]int{}}, j: j}
			j.write(t, []event.Body{event.Message{Content: "@call far {\"n\":1} far {\"n\":2}\n@say Done."}})
			bodies, killed := drive(t, j, n, lost, event.Provided, far)
			at := fmt.Sprintf("killed at group %d (lost: %v)", n, lost)
			asked, again := 0, 0
			for _, b := range bodies {
				switch q := b.(type) {
				case event.ConnectRequired:
					asked++
					if q.Server != "crm" || q.ToolUseID == "" {
						t.Errorf("%s: asked for %+v", at, q)
					}
				case event.ToolAgain:
					again++
				}
			}
			uses, results := calls(bodies)
			if len(uses) != 2 || len(results) != 2 || text(bodies) != "Done." || asked > 1 || !killed && (asked != 1 || again != 1) {
				t.Errorf("%s: %d calls began, %d have results, asked %d times, the text is %q", at, len(uses), len(results), asked, text(bodies))
			}
			for id, times := range uses {
				if r := results[id]; times != 1 || far.runs[id] > 1 || !killed && !r.OK || r.OK && far.runs[id] != 1 {
					t.Errorf("%s: call %s began %d times, ran %d times and has %+v", at, id, times, far.runs[id], r)
				}
			}
			if !killed {
				break
			}
		}
	}
}

// TestConnectionsThatDoNotCome: the turn asks once and continues with failed results.
func TestConnectionsThatDoNotCome(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[event.Outcome]string{
		event.Expired:  "was not connected within 10 minutes",
		event.Skipped:  "The user has not granted access to the tool server crm",
		event.Provided: "does not accept its new connection",
	} {
		j := &journal{}
		far := &remote{counter: counter{name: "far", runs: map[string]int{}}, j: j, never: true}
		j.write(t, []event.Body{event.Message{Content: "@call far\n@say Done."}})
		bodies, _ := drive(t, j, -1, false, outcome, far)
		_, results := calls(bodies)
		for _, r := range results {
			if r.OK || !strings.Contains(r.Output, want) {
				t.Errorf("%s: %+v", outcome, r)
			}
		}
		if len(results) != 1 || text(bodies) != "Done." {
			t.Errorf("%s: %d results", outcome, len(results))
		}
	}
}
