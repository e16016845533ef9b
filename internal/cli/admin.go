package cli

import (
	"context"
	"fmt"
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

func (c *command) workspace() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "make and list workspaces",
		Example: `  parley workspace create sales --instructions @sales.md
  parley workspace list`,
		RunE: group, Args: cobra.ArbitraryArgs,
	}
	var title, instructions string
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "make a workspace: one agent with its own sessions, keys and knowledge",
		Example: `  parley workspace create sales
  parley workspace create sales --title "Sales team" --instructions "You help the sales team."
  parley workspace create sales --instructions @sales.md`,
		Args: cobra.ExactArgs(1),
		RunE: c.onDatabase(func(ctx context.Context, cfg app.Config, a *app.Admin, args []string) error {
			text, err := c.argument(instructions)
			if err != nil {
				return err
			}
			w, err := a.Workspaces.Create(ctx, args[0], title, text)
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(c.Stdout, map[string]any{"data": w})
			}
			fmt.Fprintf(c.Stdout, "%s\n", w.Slug)
			fmt.Fprintf(c.Stderr, "Made the workspace %s (%s). Next: parley keys create --workspace %s --name first\n", w.Slug, w.ID, w.Slug)
			return nil
		}),
	}
	create.Flags().StringVar(&title, "title", "", "what people see; NAME where there is none")
	create.Flags().StringVar(&instructions, "instructions", "", "what the agent is told about its work; @FILE reads a file")
	c.jsonFlag(create)

	list := &cobra.Command{
		Use:   "list",
		Short: "list the workspaces",
		Example: `  parley workspace list
  parley workspace list --json`,
		Args: cobra.NoArgs,
		RunE: c.onDatabase(func(ctx context.Context, cfg app.Config, a *app.Admin, _ []string) error {
			all, err := a.Workspaces.List(ctx)
			if err != nil {
				return err
			}
			return c.list(all, len(all), "There is no workspace yet. Make one: parley workspace create NAME",
				[]string{"NAME", "TITLE", "MODEL", "ID", "CREATED"}, func(i int) []string {
					w := all[i]
					model := "default"
					if w.Model != nil {
						model = *w.Model
					}
					return []string{w.Slug, w.Name, model, w.ID.String(), day(&w.CreatedAt)}
				})
		}),
	}
	c.jsonFlag(list)
	cmd.AddCommand(create, list)
	return cmd
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
