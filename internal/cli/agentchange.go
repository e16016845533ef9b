package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/agent"
)

func (c *command) agentCreate() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "create an agent and publish its first version",
		Example: `  parley agent create support --instructions @support.md
  parley agent create analyst --model openai/gpt-5-mini --tool read=read_only --tool grep=read_only`,
		Args: exactArguments("NAME"),
	}
	change := c.agentFlags(cmd)
	cmd.Flags().StringVar(&note, "note", "", "why, for the history")
	cmd.RunE = c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
		d, err := change(agent.Defaults())
		if err != nil {
			return err
		}
		made, err := a.CreateAgent(ctx, args[0], changeOf(d), note)
		if err != nil {
			return err
		}
		return c.printNamed(made.Name, object{"agent": made.Name, "version": made.Newest},
			"Created the agent %s. Next: parley send --agent %[1]s MESSAGE", made.Name)
	})
	workspaceFlag(cmd)
	return cmd
}

func (c *command) agentEdit() *cobra.Command {
	var discard bool
	cmd := &cobra.Command{
		Use:   "edit [NAME]",
		Short: "edit the draft of an agent",
		Example: `  parley agent edit                                in the editor of VISUAL or EDITOR
  parley agent edit support --instructions @support.md --effort low
  parley agent edit --rule bash=deny --tool all`,
		Args: atLeastArguments(0, "NAME"),
	}
	change := c.agentFlags(cmd)
	cmd.Flags().BoolVar(&discard, "discard", false, "remove the draft")
	cmd.RunE = c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
		found, err := findAgent(ctx, a, optional(args)) // its ETag: an editor can be open for long
		if err != nil {
			return err
		}
		which := "published"
		if found.Draft {
			which = "draft"
		}
		was, err := a.AgentVersion(ctx, found.Name, which)
		if err != nil {
			return err
		}
		switch {
		case discard:
			if err := a.DeleteAgentDraft(ctx, found.Name, found.ETag); err != nil {
				return err
			}
			return c.printDone(object{"agent": found.Name, "draft": false}, "Removed the draft of %s.", found.Name)
		case !isAgentFlagged(cmd):
			text, err := c.editInstructions(ctx, was)
			if err != nil {
				return err
			}
			change = func(d agent.Definition) (agent.Definition, error) {
				d.Instructions = text
				return d, nil
			}
		}
		d, err := change(definitionOf(was.AgentDefinition))
		if err != nil {
			return err
		}
		saved, err := a.PutAgentDraft(ctx, found.Name, changeOf(d), found.ETag)
		if err != nil {
			return err
		}
		if saved.ETag == found.ETag {
			return c.printDone(object{"agent": found.Name, "draft": found.Draft}, "Nothing has changed.")
		}
		return c.printDone(object{"agent": found.Name, "draft": true},
			"Saved the draft of %s. Try it: parley send --agent %[1]s --agent-version draft MESSAGE. Then: parley agent publish %[1]s", found.Name)
	})
	workspaceFlag(cmd)
	return cmd
}

func (c *command) agentPublish() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "publish [NAME]",
		Short: "publish the draft of an agent as its next version",
		Example: `  parley agent publish --note "Shorter answers"
  parley agent publish support`,
		Args: atLeastArguments(0, "NAME"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			found, err := findAgent(ctx, a, optional(args))
			if err != nil {
				return err
			}
			published, err := a.PublishAgent(ctx, found.Name, note, found.ETag)
			if err != nil {
				return err
			}
			return c.printDone(object{"agent": published.Name, "version": published.Newest}, "Published version %d of %s.",
				published.Newest, published.Name)
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for the history")
	workspaceFlag(cmd)
	return cmd
}

func (c *command) agentRollback() *cobra.Command {
	var note string
	var to int
	cmd := &cobra.Command{
		Use:   "rollback [NAME]",
		Short: "publish an earlier version of an agent again",
		Example: `  parley agent rollback --to 3
  parley agent rollback support --to 1 --note "Answers were wrong"`,
		Args: atLeastArguments(0, "NAME"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			found, err := findAgent(ctx, a, optional(args))
			if err != nil {
				return err
			}
			published, err := a.RollbackAgent(ctx, found.Name, to, note, found.ETag)
			if err != nil {
				return err
			}
			return c.printDone(object{"agent": published.Name, "version": published.Newest, "of": to},
				"Published version %d of %s again, as version %d.", to, published.Name, published.Newest)
		}),
	}
	cmd.Flags().IntVar(&to, "to", 0, "number of the earlier version")
	_ = cmd.MarkFlagRequired("to")
	cmd.Flags().StringVar(&note, "note", "", "why, for the history")
	workspaceFlag(cmd)
	return cmd
}

func (c *command) agentDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "delete an agent",
		Example: `  parley agent delete support
  parley agent delete support --yes      without asking`,
		Args: exactArguments("NAME"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if err := c.requireConsent(yes, fmt.Sprintf("Delete the agent %s?", plainLine(args[0])), "Nothing was deleted."); err != nil {
				return err
			}
			if err := a.DeleteAgent(ctx, args[0], ""); err != nil {
				return err
			}
			return c.printDone(object{"agent": args[0]}, "Deleted the agent %s.", plainLine(args[0]))
		}),
	}
	yesFlag(cmd, &yes)
	workspaceFlag(cmd)
	return cmd
}
