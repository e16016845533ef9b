package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/app"
)

func (c *command) runnerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "run the commands of other servers",
		Example: `  PARLEY_RUNNER_TOKEN_FILE=/etc/parley/runner-token parley runner
  parley runner --listen unix:///run/parley/runner.sock`,
		Long: `Runs the agents' commands for servers whose PARLEY_RUNNER names this process, until Ctrl-C or SIGTERM.
Then running commands have PARLEY_DRAIN to end. It needs a sandbox and the token of the servers, and
neither a database nor the master key. The requests of commands return to the server.`,
		Args:        nothing,
		Annotations: map[string]string{ownOutput: "a runner logs"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadSettings(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			stop := c.onInterrupt(func(before int) {
				switch {
				case before == 0:
					cancel()
				case c.Exit != nil:
					c.Exit(exitInterrupted)
				}
			})
			defer stop()
			return app.ServeRunner(ctx, cfg, cfg.Logger(c.Stderr))
		},
	}
	addSettingFlag(cmd, "listen", "PARLEY_RUNNER_LISTEN", "address to listen on")
	return cmd
}
