package agent_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

// TestRunYieldsNothingAfterStop stops iterating at each group of a turn, once with a context that
// has just ended and once without: a second yield would panic.
func TestRunYieldsNothingAfterStop(t *testing.T) {
	t.Parallel()
	const command = "@say First.\n@call free {}\n@say Last.\n"
	for _, canceled := range []bool{false, true} {
		for stop := 1; ; stop++ {
			ctx, cancel := context.WithCancel(t.Context())
			a := &agent.Agent{Model: builtin.New(), MaxTurns: 5, Log: slog.New(slog.DiscardHandler),
				Tools: []tool.Tool{&counter{name: "free", output: "ok", runs: map[string]int{}}}}
			j := &journal{}
			j.write(t, []event.Body{event.Message{Content: command}})
			groups := 0
			for _, err := range a.Run(ctx, agent.Conversation{Log: j.log, Budget: 1000}) {
				if err != nil {
					t.Fatal(err)
				}
				if groups++; groups == stop {
					if canceled {
						cancel()
					}
					break
				}
			}
			cancel()
			if groups < stop {
				if stop < 5 {
					t.Fatalf("the turn has only %d groups", groups)
				}
				break
			}
		}
	}
}
