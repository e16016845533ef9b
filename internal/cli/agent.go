package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/permission"
)

func (c *command) agentCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "agent",
		Aliases: []string{"agents"},
		Short:   "manage agents and their versions",
		Example: `  parley agent edit --instructions @agent.md
  parley send --agent-version draft "What can you do?"
  parley agent publish --note "Shorter answers"`,
		Long: `NAME is an agent of the workspace; without it the commands use the default agent. An edit changes
the draft of the agent. To publish makes the draft the next version, which runs from the next message
on.`,
	}, c.agentList(), c.agentShow(), c.agentCreate(), c.agentEdit(), c.agentDiff(), c.agentPublish(), c.agentRollback(), c.agentDelete())
}

// agentShown is an agent in --json.
type agentShown struct {
	Name      string    `json:"name"`
	Default   bool      `json:"default"`
	Published int       `json:"published_version"`
	Newest    int       `json:"newest_version"`
	Draft     bool      `json:"draft"`
	Revision  int64     `json:"revision"`
	Model     *string   `json:"model"`
	Author    string    `json:"author"`
	Note      string    `json:"note"`
	UpdatedAt time.Time `json:"updated_at"`
}

func (c *command) agentList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list agents with their published versions",
		Example: `  parley agent list
  parley agent list --workspace sales --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			list, err := a.Agents(ctx)
			if err != nil {
				return err
			}
			shown := make([]agentShown, len(list))
			for i, e := range list {
				shown[i] = agentShown{e.Name, e.Default, e.Published, e.Newest, e.Draft, e.Revision, e.Model, e.Author, e.Note, e.UpdatedAt}
			}
			return c.printList(shown, len(shown), "", []string{"NAME", "DEFAULT", "VERSION", "DRAFT", "MODEL", "BY", "CHANGED", "NOTE"},
				func(i int) []string {
					e := shown[i]
					return []string{e.Name, yesNo(e.Default), strconv.Itoa(e.Published), yesNo(e.Draft), orDefault(e.Model), e.Author,
						formatDay(&e.UpdatedAt), shortText(e.Note, 40)}
				})
		}),
	})
}

func orDefault(s *string) string {
	if s == nil {
		return "default"
	}
	return *s
}

// agentVersionShown is a version of an agent in --json.
type agentVersionShown struct {
	Agent   string `json:"agent"`
	Version int    `json:"version"` // 0: the draft
	agent.Definition
	Author    string    `json:"author"`
	Note      string    `json:"note"`
	CreatedAt time.Time `json:"created_at"`
}

func shownAgentVersion(v client.VersionOfAgent) agentVersionShown {
	return agentVersionShown{v.Agent, v.Version, definitionOf(v.AgentDefinition), v.Author, v.Note, v.CreatedAt}
}

// definitionOf converts the definition of a version, for comparisons.
func definitionOf(d client.AgentDefinition) agent.Definition {
	out := agent.Definition{Instructions: d.Instructions, Model: d.Model, Effort: d.Effort, Fallbacks: d.Fallbacks, Rules: d.Rules}
	if d.Tools != nil {
		out.Tools = make(map[string]permission.Label, len(d.Tools))
		for tool, label := range d.Tools {
			out.Tools[tool] = permission.Label(label)
		}
	}
	if d.Limits != nil {
		out.Limits = agent.Limits(*d.Limits)
	}
	return out
}

// changeOf is the reverse of definitionOf.
func changeOf(d agent.Definition) client.AgentDefinition {
	out := client.AgentDefinition{Instructions: d.Instructions, Model: d.Model, Effort: d.Effort, Fallbacks: d.Fallbacks, Rules: d.Rules,
		Limits: new(client.AgentLimits(d.Limits))}
	if d.Tools != nil {
		out.Tools = make(map[string]string, len(d.Tools))
		for tool, label := range d.Tools {
			out.Tools[tool] = string(label)
		}
	}
	return out
}

// findAgent returns an agent, the default one for "".
func findAgent(ctx context.Context, a *administration, name string) (client.Agent, error) {
	list, err := a.Agents(ctx)
	if err != nil {
		return client.Agent{}, err
	}
	for _, found := range list {
		if found.Name == name || name == "" && found.Default {
			return a.Agent(ctx, found.Name)
		}
	}
	return a.Agent(ctx, name) // for the error
}

func (c *command) agentShow() *cobra.Command {
	var version string
	var history bool
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "show a version of an agent, or its history",
		Example: `  parley agent show
  parley agent show support --version draft
  parley agent show --history`,
		Args: atLeastArguments(0, "NAME"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			found, err := findAgent(ctx, a, optional(args))
			if err != nil {
				return err
			}
			if history {
				return c.agentHistory(ctx, a, found.Name)
			}
			v, err := versionOf(ctx, a, found.Name, version)
			if err != nil {
				return err
			}
			shown := shownAgentVersion(v)
			if c.json {
				return c.printData(shown)
			}
			for _, line := range agent.Diff(agent.Definition{}, agent.Definition{Model: shown.Model, Effort: shown.Effort,
				Fallbacks: shown.Fallbacks, Tools: shown.Tools, Rules: shown.Rules, Limits: shown.Limits}) {
				if line.Op == '+' {
					fmt.Fprintln(c.Stdout, plainLine(line.Text))
				}
			}
			fmt.Fprintf(c.Stdout, "author: %s\nnote: %s\n\n%s\n", plainLine(v.Author), plainLine(v.Note), plainLines(v.Instructions))
			return nil
		}),
	}
	cmd.Flags().StringVar(&version, "version", "published", "published, draft or a number")
	cmd.Flags().BoolVar(&history, "history", false, "list the published versions, newest first")
	cmd.MarkFlagsMutuallyExclusive("version", "history")
	workspaceFlag(cmd)
	return cmd
}

// agentHistory lists all published versions of an agent.
func (c *command) agentHistory(ctx context.Context, a *administration, name string) error {
	list, err := a.AgentVersions(ctx, name)
	if err != nil {
		return err
	}
	shown := make([]object, len(list))
	for i, v := range list {
		shown[i] = object{"version": v.Version, "model": v.Model, "author": v.Author, "note": v.Note, "created_at": v.CreatedAt}
	}
	return c.printList(shown, len(list), "", []string{"VERSION", "WHEN", "BY", "MODEL", "NOTE"}, func(i int) []string {
		v := list[i]
		return []string{strconv.Itoa(v.Version), formatDay(&v.CreatedAt), v.Author, orDefault(v.Model), shortText(v.Note, 60)}
	})
}

// versionOf returns the version that a flag names.
func versionOf(ctx context.Context, a *administration, name, flag string) (client.VersionOfAgent, error) {
	if _, ok := agent.ParseWhich(flag); !ok {
		return client.VersionOfAgent{}, &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("%q is not a version.", flag),
			Do: "Use published, draft or a number from 1."}
	}
	return a.AgentVersion(ctx, name, flag)
}

// optional returns the first argument, or "".
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func (c *command) agentDiff() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "diff [NAME]",
		Short: "compare two versions of an agent",
		Example: `  parley agent diff
  parley agent diff support --from 2 --to 4`,
		Args: atLeastArguments(0, "NAME"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			found, err := findAgent(ctx, a, optional(args))
			if err != nil {
				return err
			}
			before, err := versionOf(ctx, a, found.Name, from)
			if err != nil {
				return err
			}
			after, err := versionOf(ctx, a, found.Name, to)
			if err != nil {
				return err
			}
			if c.json {
				return c.printData(object{"before": shownAgentVersion(before), "after": shownAgentVersion(after)})
			}
			for _, line := range agent.Diff(definitionOf(before.AgentDefinition), definitionOf(after.AgentDefinition)) {
				fmt.Fprintf(c.Stdout, "%c%s\n", line.Op, plainLine(line.Text))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&from, "from", "published", "published, draft or a number")
	cmd.Flags().StringVar(&to, "to", "draft", "published, draft or a number")
	workspaceFlag(cmd)
	return cmd
}
