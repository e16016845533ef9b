package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/app"
)

// onDatabase wraps the work of a command for administrators: settings, database,
// clean-up. Ctrl-C ends it.
func (c *command) onDatabase(work func(ctx context.Context, cfg app.Config, a *app.Admin, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := c.load(cmd)
		if err != nil {
			return err
		}
		ctx, stop := c.interruptible(cmd.Context())
		defer stop()
		a, err := app.OpenAdmin(ctx, cfg, c.devDir())
		if err != nil {
			return err
		}
		defer a.Close()
		return work(ctx, cfg, a, args)
	}
}

// workspaceFlag adds --workspace for commands that work in one.
func workspaceFlag(cmd *cobra.Command) {
	setting(cmd, "workspace,w", "PARLEY_WORKSPACE", "workspace, by its name or id")
}

// named is the workspace that a command means, or, where only one exists, that one.
func (c *command) named(ctx context.Context, cfg app.Config, a *app.Admin) (string, error) {
	if cfg.Workspace != "" {
		return cfg.Workspace, nil
	}
	all, err := a.Workspaces.List(ctx)
	if err != nil {
		return "", err
	}
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.Slug
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", &problem{Exit: exitUsage, Code: "WORKSPACE_NOT_FOUND", What: "There is no workspace.", Why: "The database has none yet.",
			Do: "Make one: parley workspace create NAME"}
	}
	return "", &problem{Exit: exitUsage, Code: "USAGE", What: "Which workspace?", Why: "There are several: " + strings.Join(names, ", ") + ".",
		Do: "Name one with --workspace or PARLEY_WORKSPACE."}
}

// argument is the value of a flag, or the file that @FILE names.
func (c *command) argument(value string) (string, error) {
	path, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, nil
	}
	text, err := os.ReadFile(c.path(path))
	if err != nil {
		return "", unreadable(err)
	}
	return string(text), nil
}
