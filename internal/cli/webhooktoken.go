package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (c *command) webhookToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook-token",
		Short: "manage the webhook_token of a workspace",
		Long: `A webhook_token is how callers from before there were API keys identify themselves. A
workspace has one at most. It has the scopes chat and sessions:read, does not expire
and is not rotated: for anything new, make a key.`,
		Example: `  parley keys webhook-token create
  parley keys webhook-token show
  parley keys webhook-token delete`,
		RunE: group, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(c.webhookTokenCreate(), c.webhookTokenStatus(), c.webhookTokenRevoke())
	return cmd
}

func (c *command) webhookTokenCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "create the webhook_token and print it once",
		Example: `  parley keys webhook-token create
  parley keys webhook-token create --workspace sales > token`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			key, text, err := a.Keys.CreateWebhookToken(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			return c.once(text, newKey{key, text}, "Created the webhook_token of %s with %s.", a.Workspace.Slug, key.Scopes.Names())
		}),
	}
	workspaceFlag(cmd)
	return cmd
}

func (c *command) webhookTokenStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show",
		Aliases: []string{"show-status"},
		Short:   "show whether a webhook_token exists and its last use",
		Example: `  parley keys webhook-token show
  parley keys webhook-token show --json`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			key, err := a.Keys.WebhookToken(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			if c.json {
				return c.data(key)
			}
			fmt.Fprintf(c.Stdout, "%s  %s, %s; created %s, last used %s\n",
				key.Hint(), keyStatus(key, time.Now()), key.Scopes.Names(), day(&key.CreatedAt), day(key.LastUsedAt))
			return nil
		}),
	}
	workspaceFlag(cmd)
	return cmd
}

func (c *command) webhookTokenRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete",
		Aliases: []string{"revoke"},
		Short:   "revoke the webhook_token and close its streams",
		Example: `  parley keys webhook-token delete
  parley keys webhook-token delete --workspace sales`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			key, err := a.Keys.RevokeWebhookToken(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			return c.done(key, "Revoked the webhook_token %s.", key.Hint())
		}),
	}
	workspaceFlag(cmd)
	return cmd
}
