package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/spf13/cobra"
)

func (c *command) vaultCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "vault",
		Short: "manage the master keys of secrets",
		Example: `  (umask 077; parley vault key > vault.key)
  PARLEY_VAULT_KEY_FILE=vault.key parley serve
  parley vault rotate`,
		Long: `PARLEY_VAULT_KEY_FILE names a file with one master key on each line, the newest first. The first key
encrypts; every key decrypts. Secrets cannot be recovered without their key, so keep a copy apart
from the database.

To rotate: put a new key first, restart every server, run parley vault rotate, and delete the old key
a week later, when no signed address needs it.`,
	}, c.vaultKey(), c.vaultRotate())
}

func (c *command) vaultKey() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "print a new master key",
		Example: `  (umask 077; parley vault key > vault.key)
  (umask 077; { parley vault key; cat vault.key; } > vault.new && mv vault.new vault.key)   a new one first`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error {
			key := vault.GenerateKey()
			return c.printNamed(key, object{"key": key},
				"Store the key in a file that only the server can read, and keep a copy apart from the database.")
		},
	}
}

func (c *command) vaultRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "encrypt all secrets under the newest master key",
		Example: `  parley vault rotate
  PARLEY_VAULT_KEY_FILE=vault.key parley vault rotate`,
		Long: `Encrypts all data keys in the database under the first key of PARLEY_VAULT_KEY_FILE. It does not
decrypt the values. Servers may run meanwhile if all of them were started with that key. After an
interruption, run the command again.`,
		Args: nothing,
		RunE: c.onDatabase(func(ctx context.Context, a *admin, _ []string) error {
			secrets, err := a.OpenVault(ctx)
			if err != nil {
				return err
			}
			done, err := secrets.Rotate(ctx)
			if errors.Is(err, vault.ErrStillSealing) {
				return &problem{Exit: exitFailed, Code: "FAILED", What: "The rotation is not finished.",
					Why: "A server still encrypts under an old key.",
					Do:  "Start every server again with the new key first, then run parley vault rotate again."}
			}
			if err != nil {
				return err
			}
			retired := ""
			if len(done.Retired) > 0 {
				retired = "\nNothing in the database needs " + strings.Join(done.Retired,
					", ") + " any more. Delete it in a week, when no signed address needs it either."
			}
			return c.printDone(object{"rewrapped": done.Rewrapped, "retired": append([]string{}, done.Retired...)},
				"%d %s now encrypted under the newest key.%s", done.Rewrapped, pluralize(done.Rewrapped, "value is", "values are"), retired)
		}),
	}
}
