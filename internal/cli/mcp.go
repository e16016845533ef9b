package cli

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) mcp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "run an MCP server over stdio",
		Example: `  parley mcp --url https://parley.example
  claude mcp add parley -- parley mcp --url https://parley.example`,
		Long: `Programs that speak the Model Context Protocol can reach a workspace at /mcp of its server.
Those that only start programs on their own machine start this one: it passes their messages
on, and the answers back. It needs a key with the scope mcp or mcp:read in PARLEY_API_KEY. When
its stdin ends, it waits up to 10 seconds for the answers that are still to come, says under their
ids which were not waited for, and ends; an agent goes on without it, and its answer is in the
session.`,
		Args: nothing, Annotations: map[string]string{ownOutput: "stdout carries the protocol"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := c.target(cmd)
			if err != nil {
				return err
			}
			target.URL = strings.TrimSuffix(strings.TrimRight(target.URL, "/"), "/mcp") // as other programs want it
			remote, err := c.clientOf(target, nil)
			if err != nil {
				return err
			}
			defer remote.Close()
			if !fed(c.Stdin) {
				return usage(cmd, "There is nobody to talk to.", "A program that speaks MCP starts this command, and writes to its stdin.")
			}
			ctx, stop := c.interruptible(cmd.Context())
			defer stop()
			err = remote.MCP(ctx, c.Stdin, c.Stdout, cmp.Or(c.Patience, 10*time.Second))
			if errors.Is(err, client.ErrUnanswered) {
				return &problem{Exit: exitFailed, Code: "UNANSWERED", What: "stdin has ended before everything was answered.",
					Why: "An agent that works goes on without this command, and its answer is in the session.", Do: "parley sessions list shows it."}
			}
			return err
		},
	}
	setting(cmd, "url", "PARLEY_URL", "the server")
	return cmd
}
