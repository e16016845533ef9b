package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/agent"
)

// agentEdited names the agent that a command changes.
func (c *command) agentEdited(a *admin, args []string) agent.Edit {
	return agent.Edit{Workspace: a.Workspace.ID, Name: optional(args), Author: c.actorName()}
}

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
	cmd.RunE = c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
		d, err := change(agent.Defaults())
		if err != nil {
			return err
		}
		made, err := a.Agents.Create(ctx, c.agentEdited(a, args), d, note)
		if err != nil {
			return err
		}
		return c.printNamed(made.Name, object{"agent": made.Name, "version": made.Newest}, "Created the agent %s. Next: parley send --agent %[1]s MESSAGE", made.Name)
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
	cmd.RunE = c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
		e := c.agentEdited(a, args)
		found, err := a.Agents.Find(ctx, e.Workspace, e.Name)
		if err != nil {
			return err
		}
		e.Name, e.Revision = found.Name, found.Revision // an editor can be open for long
		switch {
		case discard:
			if _, err := a.Agents.DropDraft(ctx, e); err != nil {
				return err
			}
			return c.printDone(object{"agent": found.Name, "draft": false}, "Removed the draft of %s.", found.Name)
		case !isAgentFlagged(cmd):
			text, err := c.editInstructions(ctx, a, found)
			if err != nil {
				return err
			}
			change = func(d agent.Definition) (agent.Definition, error) {
				d.Instructions = text
				return d, nil
			}
		}
		saved, err := a.Agents.SaveDraft(ctx, e, change)
		if err != nil {
			return err
		}
		if !saved.HasDraft || saved.Revision == found.Revision {
			return c.printDone(object{"agent": found.Name, "draft": saved.HasDraft}, "Nothing has changed.")
		}
		return c.printDone(object{"agent": found.Name, "draft": true}, "Saved the draft of %s. Try it: parley send --agent %[1]s --agent-version draft MESSAGE. Then: parley agent publish %[1]s", found.Name)
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			published, err := a.Agents.Publish(ctx, c.agentEdited(a, args), note)
			if err != nil {
				return err
			}
			return c.printDone(object{"agent": published.Name, "version": published.Newest}, "Published version %d of %s.", published.Newest, published.Name)
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			published, err := a.Agents.Rollback(ctx, c.agentEdited(a, args), to, note)
			if err != nil {
				return err
			}
			return c.printDone(object{"agent": published.Name, "version": published.Newest, "of": to}, "Published version %d of %s again, as version %d.", to, published.Name, published.Newest)
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			if err := c.requireConsent(yes, fmt.Sprintf("Delete the agent %s?", plainLine(args[0])), "Nothing was deleted."); err != nil {
				return err
			}
			if err := a.Agents.Delete(ctx, c.agentEdited(a, args)); err != nil {
				return err
			}
			return c.printDone(object{"agent": args[0]}, "Deleted the agent %s.", plainLine(args[0]))
		}),
	}
	yesFlag(cmd, &yes)
	workspaceFlag(cmd)
	return cmd
}
