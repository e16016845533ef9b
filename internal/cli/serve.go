package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/app"
)

func (c *command) serveCommand() *cobra.Command {
	var dev bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the server",
		Example: `  parley serve --dev                                      try it: private PostgreSQL, demo workspace, built-in model
  OPENAI_API_KEY=sk-… parley serve --dev                  the same with a real model
  DATABASE_URL=… PARLEY_VAULT_KEY_FILE=… parley serve     for real`,
		Long: `Runs the server until Ctrl-C or SIGTERM. Then running model calls and tool calls end, for at most
PARLEY_DRAIN, other servers or the next start continue the turns, and streams end so that clients
reconnect. A second Ctrl-C or SIGTERM hands the turns over at once. A third ends the server at once.`,
		Args:        nothing,
		Annotations: map[string]string{ownOutput: "a server logs"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadSettings(cmd)
			if err != nil {
				return err
			}
			opt := app.Options{Config: cfg, Out: c.Stdout, Log: cfg.Logger(c.Stderr)}
			if dev {
				opt.DevDir = c.devDir()
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			hurry := make(chan struct{})
			opt.Hurry = hurry
			stop := c.onInterrupt(func(before int) {
				switch {
				case before == 0:
					cancel()
				case before == 1:
					close(hurry)
				case c.Exit != nil:
					c.Exit(exitInterrupted)
				}
			})
			defer stop()
			err = app.Serve(ctx, opt)
			if cmd.Context().Err() == nil && errors.Is(err, context.Canceled) { // the start was not complete
				opt.Log.InfoContext(cmd.Context(), "stopped")
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dev, "dev", false, "use "+app.DevDir+
		": a private PostgreSQL unless DATABASE_URL is set, a demo workspace, a key for this machine")
	addSettingFlag(cmd, "listen", "PARLEY_LISTEN", "address to listen on")
	addSettingFlag(cmd, "workers", "PARLEY_WORKERS", "turns that this process runs at once")
	switchOff(cmd, "no-workers", "PARLEY_WORKERS", "0", "serve requests only, run no turns")
	switchOff(cmd, "no-http", "PARLEY_HTTP", "false", "run turns only, serve no requests")
	cmd.MarkFlagsMutuallyExclusive("workers", "no-workers")
	return cmd
}

func (c *command) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "manage the data of serve --dev",
		Example: `  parley dev reset
  parley dev reset --yes`,
		RunE: runGroup, Args: cobra.ArbitraryArgs,
	}
	var yes bool
	reset := &cobra.Command{
		Use:   "reset",
		Short: "delete " + app.DevDir + ": the private PostgreSQL with all its data, and the key",
		Example: `  parley dev reset
  parley dev reset --yes      without asking`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := c.devDir()
			if _, err := os.Stat(dir); err != nil {
				return c.printDone(object{"deleted": nil}, "%s does not exist.", dir)
			}
			if err := c.requireConsent(yes, fmt.Sprintf("Delete %s with all its sessions, keys and documents?", dir),
				"Nothing was deleted."); err != nil {
				return err
			}
			if err := app.ResetDev(cmd.Context(), dir); err != nil {
				return &problem{Exit: exitFailed, Code: "FAILED", What: "The development data were not deleted.", Why: errorSentence(err),
					Do: "Stop the server that uses them."}
			}
			return c.printDone(object{"deleted": dir}, "Deleted %s.", dir)
		},
	}
	yesFlag(reset, &yes)
	cmd.AddCommand(reset)
	return cmd
}
