package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) callbacksCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "callbacks",
		Aliases: []string{"callback"},
		Short:   "manage callbacks",
		Example: `  parley callbacks list --status failed
  parley callbacks redeliver 0192f0aa-0000-7000-8000-000000000001
  parley callbacks secret --rotate > webhook.secret`,
	}, c.callbacksList(), c.callbacksShow(), c.callbacksRedeliver(), c.callbacksSecret())
}

func (c *command) callbacksList() *cobra.Command {
	var q client.DeliveryQuery
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list deliveries to callbacks",
		Example: `  parley callbacks list
  parley callbacks list --status failed
  parley callbacks list --limit 100 --json`,
		Args: nothing,
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, _ []string) error {
		page, err := remote.Deliveries(ctx, q)
		if err != nil {
			return err
		}
		return printPage(c, cmd, page, "No deliveries.",
			[]string{"CALLBACK", "TYPE", "STATUS", "ATTEMPTS", "LAST", "NEXT", "URL", "CREATED"}, func(d client.Delivery) []string {
				n, last, next := "0", "", ""
				if d.LastAttempt != nil {
					n, last = strconv.Itoa(d.LastAttempt.N), cameOf(*d.LastAttempt)
				}
				if d.NextAt != nil {
					next = formatDay(d.NextAt)
				}
				return []string{d.CallbackID, d.Type, d.Status, n, last, next, shortText(d.URL, 60), formatDay(&d.CreatedAt)}
			})
	})
	c.addPageFlags(cmd, &q.Limit, &q.Cursor)
	cmd.Flags().StringVar(&q.Status, "status", "", "only pending, delivered or failed")
	return cmd
}

// cameOf returns the outcome of an attempt in a word.
func cameOf(a client.Attempt) string {
	switch {
	case a.Status == 0:
		return a.Error
	case a.Error == "":
		return strconv.Itoa(a.Status)
	}
	return strconv.Itoa(a.Status) + " " + a.Error
}

func (c *command) callbacksShow() *cobra.Command {
	return withServer(&cobra.Command{
		Use:   "show CALLBACK",
		Short: "show a callback with its delivery attempts",
		Example: `  parley callbacks show 0192f0aa-0000-7000-8000-000000000001
  parley callbacks show 0192f0aa-0000-7000-8000-000000000001 --json    with what is sent`,
		Args: exactArguments("CALLBACK"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			cb, err := remote.Callback(ctx, args[0])
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(c.Stdout, cb.Raw)
			}
			status := cb.Status
			if cb.Disabled {
				status += ", disabled by its receiver"
			}
			for _, line := range [][2]string{{"callback", cb.CallbackID}, {"url", cb.URL}, {"status", status}, {"session", cb.SessionID},
				{"turn", cb.TurnID}} {
				fmt.Fprintf(c.Stdout, "%-10s%s\n", line[0], plainLine(line[1]))
			}
			rows := [][]string{{"TYPE", "STATUS", "ATTEMPT", "AT", "RESULT", "LATENCY"}}
			for _, d := range cb.Deliveries {
				if len(d.Attempts) == 0 {
					rows = append(rows, []string{d.Type, d.Status, "", "", "", ""})
				}
				for _, a := range d.Attempts {
					rows = append(rows, []string{d.Type, d.Status, strconv.Itoa(a.N), formatDay(&a.At), cameOf(a), strconv.Itoa(a.LatencyMS) + " ms"})
				}
			}
			if len(rows) == 1 {
				fmt.Fprintln(c.Stderr, "No deliveries yet.")
				return nil
			}
			fmt.Fprintln(c.Stdout)
			return writeTable(c.Stdout, rows)
		}),
	})
}

func (c *command) callbacksRedeliver() *cobra.Command {
	return withServer(&cobra.Command{
		Use:   "redeliver CALLBACK",
		Short: "redeliver the newest report of a callback",
		Example: `  parley callbacks redeliver 0192f0aa-0000-7000-8000-000000000001
  parley callbacks list --status failed`,
		Args: exactArguments("CALLBACK"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			r, err := remote.Redeliver(ctx, args[0])
			if err != nil {
				return err
			}
			if !r.Redelivering {
				return &problem{Exit: exitFailed, Code: "NOTHING_TO_DELIVER", What: "The callback has no report to deliver.",
					Why: "The turn of this callback still runs.",
					Do:  "See parley callbacks show " + args[0] + "."}
			}
			return c.printDone(r, "The report is sent again with the webhook-id %s.", plainLine(r.WebhookID))
		}),
	})
}
