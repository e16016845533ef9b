package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (c *command) webhookToken() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "webhook-token",
		Short: "manage the webhook_token of a workspace",
		Long: `A webhook_token authenticates clients that are older than API keys. A workspace has at most one. It
has the scopes chat and sessions:read, does not expire and cannot be rotated. For new clients,
create a key.`,
		Example: `  parley keys webhook-token create
  parley keys webhook-token show
  parley keys webhook-token delete`,
	}, c.webhookTokenCreate(), c.webhookTokenStatus(), c.webhookTokenRevoke())
}

func (c *command) webhookTokenCreate() *cobra.Command {
	return withWorkspace(&cobra.Command{
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
			return c.printOnce(text, newKey{key, text}, "Created the webhook_token of %s with %s.", a.Workspace.Slug, key.Scopes.Names())
		}),
	})
}

func (c *command) webhookTokenStatus() *cobra.Command {
	return withWorkspace(&cobra.Command{
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
				return c.printData(key)
			}
			fmt.Fprintf(c.Stdout, "%s  %s, %s; created %s, last used %s\n",
				key.Hint(), keyStatus(key, time.Now()), key.Scopes.Names(), formatDay(&key.CreatedAt), formatDay(key.LastUsedAt))
			return nil
		}),
	})
}

func (c *command) webhookTokenRevoke() *cobra.Command {
	return withWorkspace(&cobra.Command{
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
			return c.printDone(key, "Revoked the webhook_token %s.", key.Hint())
		}),
	})
}
