package cli

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) allowlistCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "allowlist",
		Short: "manage the patterns of tool calls that need no approval",
		Example: `  parley allowlist list
  parley allowlist create "wiki_write(handbook/**)"
  parley allowlist delete 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b`,
	}, c.allowlistList(), c.allowlistAdd(), c.allowlistRevoke())
}

func (c *command) allowlistList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list patterns with their origin and use",
		Example: `  parley allowlist list
  parley allowlist list --all --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			shown, err := a.Allowlist(ctx)
			if err != nil {
				return err
			}
			if !all {
				shown = slices.DeleteFunc(shown, func(e client.Pattern) bool { return e.RevokedAt != nil })
			}
			return c.printList(shown, len(shown), "The allow-list is empty. Approvals can add patterns, and so can parley allowlist create PATTERN.",
				[]string{"ID", "PATTERN", "STATUS", "ADDED BY", "APPROVAL", "HITS", "LAST HIT", "ADDED"}, func(i int) []string {
					e := shown[i]
					status, approval := "active", "none"
					if e.RevokedAt != nil {
						status = "revoked"
					}
					if e.ApprovalID != nil {
						approval = *e.ApprovalID
					}
					return []string{e.ID, e.Pattern, status, e.AddedBy, approval, strconv.FormatInt(e.Hits, 10), formatDay(e.LastHitAt),
						formatDay(&e.CreatedAt)}
				})
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "show revoked patterns too")
	return cmd
}

func (c *command) allowlistAdd() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "create PATTERN",
		Aliases: []string{"add"},
		Short:   "add a pattern to the allow-list",
		Example: `  parley allowlist create "wiki_write(handbook/**)"
  parley allowlist create "bash(git diff *)"
  parley allowlist create "http_request(GET api.example.com/**)"`,
		Args: exactArguments("PATTERN"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			added, err := a.AddPattern(ctx, args[0])
			if err != nil {
				return err
			}
			return c.printDone(object{"pattern": added.Pattern}, "The allow-list has %s.", added.Pattern)
		}),
	})
}

func (c *command) allowlistRevoke() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "delete ID",
		Aliases: []string{"revoke"},
		Short:   "remove a pattern from the allow-list and keep its record",
		Example: `  parley allowlist delete 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b
  parley allowlist delete 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b --workspace sales`,
		Args: exactArguments("ID"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if err := a.RevokePattern(ctx, args[0]); isNotFound(err) {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "The allow-list has no such entry in force.", Do: "See parley allowlist list."}
			} else if err != nil {
				return err
			}
			return c.printDone(object{"allowlist_id": args[0]}, "Revoked %s.", args[0])
		}),
	})
}
