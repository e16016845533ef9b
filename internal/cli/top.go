package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/pgerr"
)

const (
	topPause   = time.Second
	topTimeout = 5 * time.Second // of one reading
	// clearScreen moves the cursor to the top and clears everything below.
	clearScreen = "\x1b[H\x1b[J"
)

func (c *command) topCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "show the work of all servers, live",
		Long: `Shows the turns by state, the queues, the processes that run turns, streams, listeners, the oldest
running turns, pending approvals and the errors of the last five minutes, once a second. If the first
reading fails, the command ends with the error; later it outlasts an outage of the server or the
database. With --json it prints an object each second.`,
		Example: `  parley top
  parley top --once
  parley top --once --json`,
		Args: nothing,
		RunE: c.administerServer(func(ctx context.Context, a *administration, _ []string) error {
			for begun, failing := false, false; ; {
				limited, cancel := context.WithTimeout(ctx, topTimeout)
				now, err := a.Activity(limited)
				cancel()
				if ctx.Err() != nil {
					return nil // Ctrl-C is how a live view ends
				}
				switch {
				case err == nil:
					begun, failing, err = true, false, c.printActivity(now, !once)
				case begun && (exitCode(err) == exitUnavailable || pgerr.IsTransient(err)): // a live view outlasts an outage
					if !failing {
						p := *explainError(explainAdminError(err))
						p.Do = "The view continues after the outage."
						c.reportProblem(&p)
					}
					failing, err = true, nil
				}
				if err != nil || once {
					return err
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(topPause):
				}
			}
		}),
	}
	cmd.Flags().BoolVar(&once, "once", false, "print the state once")
	return cmd
}

// printActivity prints one reading. A live view clears the terminal before it.
func (c *command) printActivity(a client.Activity, live bool) error {
	if c.json {
		return c.printData(a)
	}
	text := renderActivity(a)
	if live && isTerminal(c.Stdout) {
		text = clearScreen + text
	} else if live {
		text += "\n"
	}
	_, err := fmt.Fprint(c.Stdout, text)
	return err
}

func renderActivity(a client.Activity) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("parley", "%s   %d %s, %d %s, %d %s", a.At.Local().Format(time.DateTime), a.Replicas, pluralize(a.Replicas, "replica", "replicas"),
		a.Listeners, pluralize(a.Listeners, "listener", "listeners"), a.Streams, pluralize(int(a.Streams), "stream", "streams"))
	line("turns", "%d running, %d queued (oldest %s), %d waiting, %d lined up", a.Turns.Running, a.Turns.Queued,
		formatSeconds(a.Turns.OldestQueued), a.Turns.Waiting, a.Turns.LinedUp)
	line("approvals", "%d pending (oldest %s)", a.Approvals.Pending, formatSeconds(a.Approvals.Oldest))
	var workers, ended []string
	for _, w := range a.Workers {
		workers = append(workers, fmt.Sprintf("node %d: %d", w.Node, w.Turns))
	}
	line("workers", "%s", cmp.Or(strings.Join(workers, ", "), "none has a turn"))
	for _, e := range a.Ended {
		name := e.State
		if e.Error != "" && e.Error != e.State {
			name += " " + e.Error
		}
		ended = append(ended, fmt.Sprintf("%d %s", e.Turns, name))
	}
	line("ended", "%s   (of the turns of the last 5 minutes)", cmp.Or(plainLine(strings.Join(ended, ", ")), "none"))
	for _, q := range slices.Backward(a.Queues) {
		if q.Jobs == 0 {
			continue
		}
		line("queue", "%-12s %6d %-10s oldest %s", plainLine(q.Name), q.Jobs, plainLine(q.State), formatSeconds(q.Oldest)+lostNote(q))
	}
	if len(a.Slow) > 0 {
		fmt.Fprintf(&b, "\n%8s  %-20s %-10s %-36s  %s\n", "SECONDS", "WORKSPACE", "NODE", "SESSION", "TURN")
	}
	for _, t := range a.Slow {
		fmt.Fprintf(&b, "%8.1f  %-20s %-10d %-36s  %s\n", t.Seconds, plainLine(t.Workspace), t.Node, plainLine(t.Session), plainLine(t.Turn))
	}
	return b.String()
}

// lostNote explains the state of jobs whose process is gone.
func lostNote(q client.Queue) string {
	if q.State != "lost" {
		return ""
	}
	return "   (their processes ended; another process takes the work over)"
}

func formatSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
