package cli

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "run an MCP server over stdio",
		Example: `  parley mcp --url https://parley.example
  claude mcp add parley -- parley mcp --url https://parley.example`,
		Long: `Forwards messages of the Model Context Protocol between stdio and /mcp of a server, for MCP clients
that only start local programs. It needs a key with the scope mcp or mcp:read in PARLEY_API_KEY. At
the end of stdin it waits up to 10 seconds for outstanding responses, answers the others with an
error, and exits. A running turn continues; its answer is in the session.`,
		Args: nothing, Annotations: map[string]string{ownOutput: "stdout carries the protocol"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := c.targetServer(cmd)
			if err != nil {
				return err
			}
			target.URL = strings.TrimSuffix(strings.TrimRight(target.URL, "/"), "/mcp") // other programs use this form
			remote, err := c.clientOf(target, nil)
			if err != nil {
				return err
			}
			defer remote.Close()
			if !isFed(c.Stdin) {
				return usageError(cmd, "stdin is not a pipe.", "An MCP client starts this command and writes to its stdin.")
			}
			ctx, stop := c.interruptContext(cmd.Context())
			defer stop()
			err = remote.MCP(ctx, c.Stdin, c.Stdout, cmp.Or(c.Patience, 10*time.Second))
			if errors.Is(err, client.ErrUnanswered) {
				return &problem{Exit: exitFailed, Code: "UNANSWERED", What: "stdin ended before all responses came.",
					Why: "A running turn continues, and its answer is in the session.", Do: "parley sessions list shows it."}
			}
			return err
		},
	}
	addSettingFlag(cmd, "url", "PARLEY_URL", "the server")
	return cmd
}
