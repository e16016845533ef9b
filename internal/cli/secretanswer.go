package cli

import (
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/text"
)

func (c *command) secretCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "secret",
		Short: "respond to secret requests",
		Example: `  parley approvals list
  parley secret provide 0192f0aa-0000-7000-8000-000000000006
  parley secret skip 0192f0aa-0000-7000-8000-000000000006`,
		Long: `Responds to a pending request of the kind secret; the key needs the scope secret. Administrators
register and delete secrets with parley secrets.`,
	}, c.secretProvide(), c.secretSkip())
}

func (c *command) secretProvide() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "provide ID",
		Short: "provide a secret from a prompt, stdin or a file",
		Example: `  parley secret provide 0192f0aa-0000-7000-8000-000000000006
  parley secret provide 0192f0aa-0000-7000-8000-000000000006 < token.txt
  parley secret provide 0192f0aa-0000-7000-8000-000000000006 --file key.pem`,
		Long: `The workspace's vault stores the value encrypted, and sends it only to the hosts of the secret. The
agent never sees it.`,
		Args: exactArguments("ID"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			prompt, name := "Value", "the secret"
			a, err := remote.Approval(ctx, args[0])
			if refused, ok := errors.AsType[*client.Error](err); err != nil && (!ok || refused.Status != http.StatusForbidden) {
				return err
			}
			if key := questionOf(a).KeyName; key != "" {
				prompt, name = "Value of "+text.Escape(key), key
			}
			value, err := c.hiddenInput(ctx, prompt, file)
			if err != nil {
				return err
			}
			if !utf8.Valid(value.Reveal()) {
				return &problem{Exit: exitUsage, Code: "USAGE", What: "The value is not text.", Why: "A secret must be UTF-8."}
			}
			d, err := remote.ProvideSecret(ctx, args[0], string(value.Reveal()), c.approver)
			if err == nil {
				c.warnAboutValue(name, value, true)
			}
			return c.printDecision(d, err)
		}),
	}
	c.decisionFlags(cmd)
	fileFlag(cmd, &file)
	return cmd
}

func (c *command) secretSkip() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skip ID",
		Short: "continue without the secret",
		Example: `  parley secret skip 0192f0aa-0000-7000-8000-000000000006
  parley approvals list --status skipped`,
		Args: exactArguments("ID"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			d, err := remote.SkipSecret(ctx, args[0], c.approver)
			return c.printDecision(d, err)
		}),
	}
	c.decisionFlags(cmd)
	return cmd
}
