package cli

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/spf13/cobra"
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

// entryShown is an entry of the allow-list in --json.
type entryShown struct {
	ID         uuid.UUID  `json:"allowlist_id"`
	Tool       string     `json:"tool"`
	Pattern    string     `json:"pattern"`
	AddedBy    string     `json:"added_by"` // key id, or cli
	ApprovalID *uuid.UUID `json:"approval_id"`
	Hits       int64      `json:"hits"`
	LastHitAt  *time.Time `json:"last_hit_at"`
	CreatedAt  time.Time  `json:"created_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func (c *command) allowlistList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list patterns with their origin and use",
		Example: `  parley allowlist list
  parley allowlist list --all --json`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			entries, err := a.Permissions.List(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			if !all {
				entries = slices.DeleteFunc(entries, func(e permission.Entry) bool { return e.RevokedAt != nil })
			}
			shown := make([]entryShown, len(entries))
			for i, e := range entries {
				shown[i] = entryShown{ID: e.ID, Tool: e.Tool, Pattern: e.Pattern, AddedBy: e.AddedBy, ApprovalID: e.ApprovalID,
					Hits: e.Hits, LastHitAt: e.LastHitAt, CreatedAt: e.CreatedAt, RevokedAt: e.RevokedAt}
			}
			return c.printList(shown, len(shown), "The allow-list is empty. Approvals can add patterns, and so can parley allowlist create PATTERN.",
				[]string{"ID", "PATTERN", "STATUS", "ADDED BY", "APPROVAL", "HITS", "LAST HIT", "ADDED"}, func(i int) []string {
					e := shown[i]
					status, approval := "active", "none"
					if e.RevokedAt != nil {
						status = "revoked"
					}
					if e.ApprovalID != nil {
						approval = e.ApprovalID.String()
					}
					return []string{e.ID.String(), e.Pattern, status, e.AddedBy, approval, strconv.FormatInt(e.Hits, 10), formatDay(e.LastHitAt), formatDay(&e.CreatedAt)}
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			pattern, err := a.Permissions.AddPattern(ctx, a.Workspace.ID, args[0])
			if err != nil {
				return err
			}
			return c.printDone(object{"pattern": pattern}, "The allow-list has %s.", pattern)
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			id, _ := uuid.Parse(args[0]) // no entry has the zero id
			revoked, err := a.Permissions.Revoke(ctx, a.Workspace.ID, id)
			if err != nil {
				return err
			}
			if !revoked {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "The allow-list has no such entry in force.", Do: "See parley allowlist list."}
			}
			return c.printDone(object{"allowlist_id": args[0]}, "Revoked %s.", args[0])
		}),
	})
}
