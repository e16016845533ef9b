package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func (c *command) mcp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "be an MCP server on stdin and stdout, for programs that start one",
		Example: `  parley mcp --url https://parley.example
  claude mcp add parley -- parley mcp --url https://parley.example`,
		Long: `Programs that speak the Model Context Protocol can reach a workspace at /mcp of its server.
Those that only start programs on their own machine start this one: it passes their messages
on, and the answers back. It needs a key with the scope mcp or mcp:read in PARLEY_API_KEY, and
ends when its stdin does.`,
		Args: nothing,
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
			return remote.MCP(ctx, c.Stdin, c.Stdout)
		},
	}
	setting(cmd, "url", "PARLEY_URL", "the server")
	return cmd
}
