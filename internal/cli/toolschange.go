package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) toolsAccept() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "accept SERVER TOOL",
		Short: "accept the changed definition of a tool",
		Example: `  parley tools show crm
  parley tools accept crm find`,
		Args: exactArguments("SERVER", "TOOL"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			t, err := findOwnTool(ctx, a, args)
			if err != nil {
				return err
			}
			if t.OfferedHash == nil {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "No change of " + t.Name + " waits for acceptance.",
					Do: "See parley tools show " + args[0] + "."}
			}
			if !c.json {
				c.printOffer(t)
			}
			if _, err := a.AcceptOwnTool(ctx, args[0], t.OwnName, *t.OfferedHash); err != nil {
				return err
			}
			return c.printDone(object{"name": t.Name}, "Accepted %s.", t.Name)
		}),
	})
}

// findOwnTool finds SERVER TOOL, by either name of the tool.
func findOwnTool(ctx context.Context, a *administration, args []string) (client.OwnTool, error) {
	s, err := a.ToolServer(ctx, args[0])
	if err != nil {
		return client.OwnTool{}, err
	}
	i := slices.IndexFunc(s.Tools, func(t client.OwnTool) bool { return t.OwnName == args[1] || t.Name == args[1] })
	if i < 0 {
		return client.OwnTool{}, &problem{Exit: exitUsage, Code: "REFUSED", What: "The server has no such tool.",
			Do: "See parley tools show " + s.Name + "."}
	}
	return s.Tools[i], nil
}

func (c *command) toolsLabel() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "label SERVER TOOL read_only|changes",
		Short: "set whether calls of a tool need approval by default",
		Long:  "A tool with the label read_only runs without approval; one with changes asks. Rules of parley permissions apply first.",
		Example: `  parley tools label crm find read_only
  parley tools label crm rename changes`,
		Args: exactArguments("SERVER", "TOOL", "read_only|changes"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			if _, err := a.UpdateOwnTool(ctx, args[0], args[1], client.OwnToolChange{Label: &args[2]}); err != nil {
				return err
			}
			return c.printDone(object{"name": args[1], "label": args[2]}, "%s of %s has the label %s.", args[1], args[0], args[2])
		}),
	})
}

func (c *command) toolsEnable(enabled bool) *cobra.Command {
	word, done := "disable", "Disabled"
	if enabled {
		word, done = "enable", "Enabled"
	}
	return withWorkspace(&cobra.Command{
		Use:     word + " SERVER [TOOL]",
		Short:   map[bool]string{true: "allow the agent to use a tool or a server again", false: "deny the agent a tool or a server"}[enabled],
		Example: "  parley tools " + word + " crm\n  parley tools " + word + " crm rename",
		Args:    atLeastArguments(1, "SERVER", "TOOL"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			var err error
			if len(args) > 1 {
				_, err = a.UpdateOwnTool(ctx, args[0], args[1], client.OwnToolChange{Enabled: &enabled})
			} else {
				_, err = a.EnableToolServer(ctx, args[0], enabled)
			}
			if err != nil {
				return err
			}
			return c.printDone(object{"name": strings.Join(args, " "), "enabled": enabled}, "%s %s.", done, strings.Join(args, " "))
		}),
	})
}

func (c *command) toolsRemove() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "remove SERVER",
		Aliases: []string{"rm", "delete"},
		Short:   "remove a tool server with its tools",
		Example: `  parley tools remove crm
  parley tools remove crm --workspace sales`,
		Args: exactArguments("SERVER"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			if err := a.DeleteToolServer(ctx, args[0]); err != nil {
				return err
			}
			return c.printDone(object{"name": args[0]}, "Removed %s.", args[0])
		}),
	})
}
