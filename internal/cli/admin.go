package cli

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/store/workspace"
)

// admin is the input of a command for administrators.
type admin struct {
	*app.Stores
	Config app.Config
}

// onDatabase wraps the work of a command for administrators that exists on the database only:
// settings, database, clean-up. Ctrl-C cancels it. administer is for all others.
func (c *command) onDatabase(work adminWork) func(*cobra.Command, []string) error {
	return c.withStores(app.OpenStores, work)
}

// onReadDatabase wraps the work of a command that may run with a role that can only read, and on a
// standby.
func (c *command) onReadDatabase(work adminWork) func(*cobra.Command, []string) error {
	return c.withStores(app.ReadStores, work)
}

// adminWork is the work of a command for administrators on the database.
type adminWork func(ctx context.Context, a *admin, args []string) error

func (c *command) withStores(open func(context.Context, app.Config, string, *slog.Logger) (*app.Stores, error),
	work adminWork) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := c.loadSettings(cmd)
		if err != nil {
			return err
		}
		if cfg.Source("PARLEY_URL") != "" && cfg.APIKey != "" && cfg.Source("DATABASE_URL") == "" && cfg.Source("PARLEY_DATABASE_URL") == "" {
			return &problem{Exit: exitUsage, Code: "CONFIGURATION", What: "`" + cmd.CommandPath() + "` works on the database only.",
				Why: "PARLEY_URL and PARLEY_API_KEY name a server, and this command does not use its API.", Do: "Run it where DATABASE_URL is set."}
		}
		ctx, stop := c.interruptContext(cmd.Context())
		defer stop()
		stores, err := open(ctx, cfg, c.devDir(), cfg.Logger(c.Stderr))
		if err != nil {
			return err
		}
		defer stores.Close()
		return work(actor.With(ctx, c.systemUser()), &admin{Stores: stores, Config: cfg}, args)
	}
}

// systemUser is the operating system's user, for the log of changes.
func (c *command) systemUser() actor.Actor {
	a := actor.Actor{Kind: actor.Command, Name: cmp.Or(c.envValue("USER"), c.envValue("LOGNAME"), c.envValue("USERNAME"))}
	if u, err := user.Current(); err == nil {
		a.Name = u.Username
	}
	return a
}

// workspaceFlag adds --workspace to a command in one workspace.
func workspaceFlag(cmd *cobra.Command) {
	addSettingFlag(cmd, "workspace,w", "PARLEY_WORKSPACE", "workspace, by its name or id")
}

// selectWorkspace finds the workspace of --workspace or PARLEY_WORKSPACE, or else the only one.
func selectWorkspace(ctx context.Context, a *admin) (workspace.Workspace, error) {
	if a.Config.Workspace != "" {
		return a.Workspaces.Find(ctx, a.Config.Workspace)
	}
	all, err := a.Workspaces.List(ctx)
	if err != nil {
		return workspace.Workspace{}, err
	}
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return workspace.Workspace{}, &problem{Exit: exitUsage, Code: "WORKSPACE_NOT_FOUND", What: "No workspace exists.",
			Why: "None has been created in this database.",
			Do:  "Create one: parley workspace create NAME"}
	}
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.Slug
	}
	return workspace.Workspace{}, &problem{Exit: exitUsage, Code: "USAGE", What: "Which workspace?",
		Why: "There are several: " + strings.Join(names, ", ") + ".",
		Do:  "Name one with --workspace or PARLEY_WORKSPACE."}
}

// withWorkspace is workspaceFlag for a command without other flags.
func withWorkspace(cmd *cobra.Command) *cobra.Command {
	workspaceFlag(cmd)
	return cmd
}

// flagArgument returns the value of a flag, or the content of the file that @FILE names.
func (c *command) flagArgument(value string) (string, error) {
	path, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, nil
	}
	text, err := os.ReadFile(c.resolvePath(path))
	if err != nil {
		return "", unreadableError(err)
	}
	return string(text), nil
}
