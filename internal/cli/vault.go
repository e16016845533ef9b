package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/spf13/cobra"
)

func (c *command) vault() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "manage the master keys of secrets",
		Example: `  (umask 077; parley vault key > vault.key)
  PARLEY_VAULT_KEY_FILE=vault.key parley serve
  parley vault rotate`,
		Long: `A file of master keys, PARLEY_VAULT_KEY_FILE, has one key on a line, the newest
first: that one encrypts, every one decrypts. Whoever loses them loses the secrets, so
keep a copy apart from the database.

To rotate, put a new key first, start every server again, run parley vault rotate, and
a week later, when no signed address can need it any more, delete the old key.`,
		RunE: group, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(c.vaultKey(), c.vaultRotate())
	return cmd
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
			return c.named(key, object{"key": key}, "Store the key in a file that only the server can read, and keep a copy apart from the database.")
		},
	}
}

func (c *command) vaultRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "encrypt all secrets under the newest master key",
		Example: `  parley vault rotate
  PARLEY_VAULT_KEY_FILE=vault.key parley vault rotate`,
		Long: `Encrypts the data keys of everything that is sealed in the database under the first
key of PARLEY_VAULT_KEY_FILE. The values themselves are not decrypted. Servers may run
meanwhile; all of them must have been started with that key. It may be broken off and
run again.`,
		Args: nothing,
		RunE: c.onDatabase(func(ctx context.Context, a *admin, _ []string) error {
			secrets, err := a.OpenVault(ctx)
			if err != nil {
				return err
			}
			done, err := secrets.Rotate(ctx)
			if errors.Is(err, vault.ErrStillSealing) {
				return &problem{Exit: exitFailed, Code: "FAILED", What: "The rotation is not finished.", Why: "A server goes on encrypting under an old key.",
					Do: "Start every server again with the new key first, then run parley vault rotate again."}
			}
			if err != nil {
				return err
			}
			retired := ""
			if len(done.Retired) > 0 {
				retired = "\nNothing in the database needs " + strings.Join(done.Retired, ", ") + " any more. Delete it in a week, when no signed address needs it either."
			}
			return c.done(object{"rewrapped": done.Rewrapped, "retired": append([]string{}, done.Retired...)},
				"%d %s now encrypted under the newest key.%s", done.Rewrapped, plural(done.Rewrapped, "value is", "values are"), retired)
		}),
	}
}
