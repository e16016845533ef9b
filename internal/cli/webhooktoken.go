package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
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

// errNoWebhookToken is the error for a workspace without a webhook_token.
var errNoWebhookToken = &problem{Exit: exitUsage, Code: "REFUSED", What: "The workspace has no webhook_token.",
	Do: "Create one: parley keys webhook-token create"}

func (c *command) webhookTokenCreate() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "create",
		Short: "create the webhook_token and print it once",
		Example: `  parley keys webhook-token create
  parley keys webhook-token create --workspace sales > token`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			if token, err := a.WebhookToken(ctx); err != nil || token.Exists {
				return cmp.Or(err, error(&problem{Exit: exitUsage, Code: "REFUSED",
					What: "A workspace has one webhook_token, which is not rotated: revoke it, then create another.",
					Do:   "Correct the command and run it again."}))
			}
			token, err := a.RollWebhookToken(ctx)
			if err != nil {
				return err
			}
			return c.printOnce(token.Text, client.NewKey{Key: *token.Token, Text: token.Text}, "Created the webhook_token of %s with %s.",
				a.slug, scopeNames(token.Token.Scopes))
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
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			token, err := a.WebhookToken(ctx)
			if err != nil {
				return err
			}
			if !token.Exists {
				return errNoWebhookToken
			}
			key := *token.Token
			if c.json {
				return c.printData(key)
			}
			fmt.Fprintf(c.Stdout, "%s  %s, %s; created %s, last used %s\n",
				keyHint(key), keyStatus(key, time.Now()), scopeNames(key.Scopes), formatDay(&key.CreatedAt), formatDay(key.LastUsedAt))
			return nil
		}),
	})
}

func (c *command) webhookTokenRevoke() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete",
		Aliases: []string{"revoke"},
		Short:   "revoke the webhook_token and close its streams",
		Example: `  parley keys webhook-token delete
  parley keys webhook-token delete --yes      without asking`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			token, err := a.WebhookToken(ctx)
			if err != nil {
				return err
			}
			if !token.Exists {
				return errNoWebhookToken
			}
			question := fmt.Sprintf("Revoke the webhook_token %s?", keyHint(*token.Token))
			if err := c.requireConsent(yes, question, "The webhook_token was not revoked."); err != nil {
				return err
			}
			key, err := a.RevokeKey(ctx, token.Token.ID)
			if err != nil {
				return err
			}
			return c.printDone(key, "Revoked the webhook_token %s.", keyHint(key))
		}),
	}
	yesFlag(cmd, &yes)
	return withWorkspace(cmd)
}
