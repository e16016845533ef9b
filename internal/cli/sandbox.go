package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

func (c *command) sandboxCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "sandbox",
		Short:   "check the command sandbox",
		Example: "  parley sandbox check\n  PARLEY_SANDBOX_UID=60600-60663 parley sandbox check",
	}, c.sandboxCheck())
}

func (c *command) sandboxCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "start a sandbox and report problems",
		Long: `Starts a sandbox with the server's settings, as the current user, and tests it from the inside. If
commands cannot be contained, it prints the reason and the remedy. Without DATABASE_URL the settings are
those of serve --dev and of a runner.`,
		Example: "  parley sandbox check\n  sudo -u parley parley sandbox check",
		Args:    nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadSettings(cmd)
			if err != nil {
				return err
			}
			if cfg.Sandbox == "off" {
				c.printNote("PARLEY_SANDBOX is off: a server with these settings runs no commands. The result shows what it could do.")
			}
			if cfg.Runner != "" {
				c.printNote("PARLEY_RUNNER is set: commands run there, and parley doctor checks it. The result is about this machine.")
			}
			box, err := app.OpenSandbox(cmd.Context(), cfg)
			if unavailable, ok := errors.AsType[*sandbox.Unavailable](err); ok {
				return &problem{Exit: exitFailed, Code: "SANDBOX_UNAVAILABLE", What: "Commands cannot be contained here.",
					Why: unavailable.Reason, Do: unavailable.Remedy}
			}
			if err != nil {
				return err
			}
			defer box.Close()
			unlimited, ok := errors.AsType[*sandbox.Unavailable](box.Limited())
			switch {
			case !ok:
				return c.printDone(object{"contained": true, "limited": true},
					"Commands can be contained here.\nThe kernel limits the memory and the processes of a command as a whole (cgroup v2).")
			case cfg.Sandbox == "require-limits":
				return &problem{Exit: exitFailed, Code: "SANDBOX_UNAVAILABLE",
					What: "PARLEY_SANDBOX is require-limits, and this system cannot limit whole commands.", Why: unlimited.Reason,
					Do: unlimited.Remedy}
			}
			return c.printDone(object{"contained": true, "limited": false, "reason": unlimited.Reason},
				"Commands can be contained here.\n%s The server watches it instead, ten times a second. %s", unlimited.Reason, unlimited.Remedy)
		},
	}
}
