package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

// connectPause is the pause between two looks at a tool server that is being connected.
const connectPause = time.Second

func (c *command) toolsConnect() *cobra.Command {
	var scopes []string
	cmd := withWorkspace(&cobra.Command{
		Use:   "connect SERVER",
		Short: "allow access to a tool server with OAuth",
		Long: `Prints a link for a browser, and waits until the access is granted. The link leads to the
authorization server of the tool server; it works once, for 15 minutes. Then the tools of the server are
listed, and accepted the first time.`,
		Example: `  parley tools connect tracker
  parley tools connect tracker --scope tickets:write`,
		Args: exactArguments("SERVER"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			before, err := a.Connections(ctx, args[0])
			if err != nil {
				return err
			}
			link, err := a.ConnectToolServer(ctx, args[0], scopes...)
			if err != nil {
				return err
			}
			if c.json {
				return c.printData(link)
			}
			fmt.Fprintf(c.Stdout, "Open this link in a browser until %s:\n%s\n", link.ExpiresAt.Local().Format("15:04 MST"), plainLine(link.URL))
			if err := awaitConnection(ctx, a, args[0], before, link.ExpiresAt); err != nil {
				return err
			}
			s, err := a.ToolServer(ctx, args[0])
			if err != nil {
				return err
			}
			return c.printToolServer(s, "Connected %s, which has %d tools.", s.Name, len(s.Tools))
		}),
	})
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "a scope to ask for besides those of the server and of "+
		"its present connection; may be repeated")
	return cmd
}

// awaitConnection waits until a tool server has another grant than before and its tools were listed.
func awaitConnection(ctx context.Context, a *administration, name string, before []client.Connection, until time.Time) error {
	known := make(map[string]time.Time)
	for _, b := range before {
		known[b.ID] = b.UpdatedAt
	}
	tick := time.NewTicker(connectPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		list, err := a.Connections(ctx, name)
		if err != nil {
			return err
		}
		for _, g := range list {
			if !g.UpdatedAt.Equal(known[g.ID]) && isListed(ctx, a, name, g.UpdatedAt) {
				return nil
			}
		}
		if time.Now().After(until) {
			return &problem{Exit: exitTimedOut, Code: "EXPIRED", What: "The link was not used in time.",
				Do: "Make another one: parley tools connect " + name}
		}
	}
}

// isListed reports whether a server was asked for its tools since a time, or has failed since.
func isListed(ctx context.Context, a *administration, name string, since time.Time) bool {
	s, err := a.ToolServer(ctx, name)
	return err == nil && (s.RefreshedAt != nil && s.RefreshedAt.After(since) || s.LastErrorAt != nil && s.LastErrorAt.After(since))
}

func (c *command) toolsDisconnect() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "disconnect SERVER [CONNECTION]",
		Short: "remove the access to a tool server",
		Long:  "Without CONNECTION all of them. The next call of a tool asks for a connection again.",
		Example: `  parley tools disconnect tracker
  parley tools disconnect tracker 0192f0aa-0000-7000-8000-000000000009`,
		Args: atLeastArguments(1, "SERVER", "CONNECTION"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			list, err := a.Connections(ctx, args[0])
			if err != nil {
				return err
			}
			forgotten := 0
			for _, g := range list {
				if len(args) > 1 && g.ID != args[1] {
					continue
				}
				if err := a.DeleteConnection(ctx, args[0], g.ID); err != nil {
					return err
				}
				forgotten++
			}
			if forgotten == 0 {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "The tool server has no such connection.",
					Do: "See parley tools show " + args[0] + "."}
			}
			return c.printDone(object{"name": args[0], "connections": forgotten}, "Disconnected %s.", args[0])
		}),
	})
}
