package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/store/vault"
)

// devKeys returns the file with the master key of serve --dev.
func devKeys(dir string) string { return filepath.Join(dir, "vault", "keys") }

// noKey explains how to create a master key.
const noKey = "PARLEY_VAULT_KEY_FILE is not set: what is secret is stored under a master key. Make one: (umask 077; parley vault key > " +
	"vault.key), and keep a copy apart from the database."

// noServerKey explains the missing keys of a command that only reads: a new key fits no database.
const noServerKey = "PARLEY_VAULT_KEY_FILE is not set: the log is signed with the master keys of the servers. Set it to their key " +
	"file, or give parley audit verify their public keys with --public-key."

// openVault opens the vault with the configured keys, or with those of development mode, which it
// creates for a database without a key.
func (s *service) openVault(ctx context.Context) (*vault.Store, error) {
	text := s.Config.VaultKey
	if text == "" {
		file := devKeys(s.DevDir)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			used, err := vault.New(s.pool, nil).Used(ctx)
			if err != nil {
				return nil, err
			}
			if used {
				return nil, &StartError{Why: "The database holds secrets under a master key, and " + file + " is not there.",
					Do: "Restore the file, name the key in PARLEY_VAULT_KEY_FILE, or delete the data with parley dev reset."}
			}
			if err := vault.MakeKeyFile(file); err != nil {
				return nil, err
			}
		}
		var err error
		if text, err = readKeys(file); err != nil {
			return nil, err
		}
	}
	if s.Config.Source("PARLEY_VAULT_KEY") == "environment" {
		s.Log.WarnContext(ctx, "PARLEY_VAULT_KEY is in the environment, where it is easily seen and inherited; PARLEY_VAULT_KEY_FILE is safer")
	}
	return openVault(ctx, s.pool, text)
}

func readKeys(file string) (Secret, error) {
	text, err := vault.ReadPrivate(file)
	if err != nil {
		return "", &ConfigError{[]string{"The master key of development mode: " + err.Error() + "."}}
	}
	return Secret(text), nil
}

// openVault compares the keys with the database before it seals anything.
func openVault(ctx context.Context, pool *pgxpool.Pool, text Secret) (*vault.Store, error) {
	keys, err := vault.ParseKeys(text.Reveal())
	if err != nil {
		return nil, &ConfigError{[]string{sentenceOf(err)}}
	}
	store := vault.New(pool, keys)
	if err := explainKeys(store.Prepare(ctx)); err != nil {
		return nil, err
	}
	return store, nil
}

// explainKeys explains the error of keys that do not fit the database.
func explainKeys(err error) error {
	if errors.Is(err, vault.ErrUnknownKey) || errors.Is(err, vault.ErrWrongKey) {
		return &StartError{Why: "The master keys do not fit the database: " + strings.TrimPrefix(sentenceOf(err), "vault: "),
			Do: "Put the key that is missing into PARLEY_VAULT_KEY_FILE, below the newest. Without it what was sealed under it is lost."}
	}
	return err
}
