package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/permission"
)

func (c *command) permissionsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "permissions",
		Aliases: []string{"permission"},
		Short:   "manage the permission rules of tools",
		Example: `  parley permissions list
  parley permissions update wiki_write ask
  parley permissions reset wiki_write`,
	}, c.permissionsList(), c.permissionsSet(), c.permissionsReset())
}

// ruleShown is a tool's rule in --json.
type ruleShown struct {
	Tool      string     `json:"tool"`
	Rule      *string    `json:"rule"` // null: the built-in one applies
	Default   string     `json:"default"`
	UpdatedAt *time.Time `json:"updated_at"`
}

func (c *command) permissionsList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list tools with their rules",
		Example: `  parley permissions list
  parley permissions list --workspace sales --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			tools, err := a.Tools(ctx)
			if err != nil {
				return err
			}
			shown := make([]ruleShown, len(tools))
			for i, t := range tools {
				shown[i] = ruleShown{Tool: t.Name, Rule: t.Rule, Default: t.DefaultRule, UpdatedAt: t.RuleSince}
			}
			return c.printList(shown, len(shown), "", []string{"TOOL", "RULE", "BUILT-IN RULE", "SET"}, func(i int) []string {
				s := shown[i]
				rule := "built-in"
				if s.Rule != nil {
					rule = *s.Rule
				}
				return []string{s.Tool, rule, s.Default, formatDay(s.UpdatedAt)}
			})
		}),
	})
}

func (c *command) permissionsSet() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "update TOOL RULE",
		Aliases: []string{"set"},
		Short:   "set the rule of a tool: allow, ask or deny",
		Example: `  parley permissions update wiki_write ask       even keys with the scope wiki:write ask
  parley permissions update bash deny            no call runs, even if a pattern covers it
  parley permissions update bash allow           every command runs; the sandbox alone holds it`,
		Args: exactArguments("TOOL", "RULE"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if _, ok := permission.ParseVerdict(args[1]); !ok {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "A rule is allow, ask or deny.", Do: "Correct the command and run it again."}
			}
			if _, err := a.PutToolRule(ctx, args[0], args[1]); err != nil {
				return err
			}
			return c.printDone(object{"tool": args[0], "rule": args[1]}, "%s %s now.", args[0], ruleTexts[args[1]])
		}),
	})
}

// ruleTexts say what a tool with a rule does.
var ruleTexts = map[string]string{"allow": "is allowed", "ask": "asks", "deny": "is denied"}

func (c *command) permissionsReset() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "reset TOOL",
		Short: "restore the built-in rule of a tool",
		Example: `  parley permissions reset bash
  parley permissions reset wiki_write --workspace sales`,
		Args: exactArguments("TOOL"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if _, err := a.DeleteToolRule(ctx, args[0]); err != nil {
				return err
			}
			return c.printDone(object{"tool": args[0], "rule": nil}, "%s has its built-in rule.", args[0])
		}),
	})
}
