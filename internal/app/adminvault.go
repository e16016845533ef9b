package app

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/parley-server/parley/internal/store/vault"
)

// commandLine stands in the audit table for these commands.
const commandLine = "command line"

// findKeys takes the development keys for the development database, and for no other:
// the first keys that a database sees are its own from then on.
func (a *Admin) findKeys(dir string) error {
	env, err := ReadDevEnv(dir)
	if err != nil || a.keys != "" || a.dsn.Reveal() != env.DatabaseURL {
		return err
	}
	if _, err := os.Stat(devKeys(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	a.keys, err = readKeys(devKeys(dir))
	return err
}

// vault opens the vault for what needs a key.
func (a *Admin) vault(ctx context.Context) (*vault.Store, error) {
	if a.keys == "" {
		return nil, &ConfigError{[]string{a.noKey}}
	}
	return openVault(ctx, a.pool, a.keys)
}

// RegisterSecret declares a credential of a workspace as a whole.
func (a *Admin) RegisterSecret(ctx context.Context, workspace string, r vault.Registration) (vault.Credential, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return vault.Credential{}, err
	}
	v, err := a.vault(ctx)
	if err != nil {
		return vault.Credential{}, err
	}
	return v.Register(ctx, w.ID, r, commandLine)
}

// SetSecret gives a credential of a workspace another value.
func (a *Admin) SetSecret(ctx context.Context, workspace, name string, value vault.Value) (vault.Credential, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return vault.Credential{}, err
	}
	v, err := a.vault(ctx)
	if err != nil {
		return vault.Credential{}, err
	}
	return v.Set(ctx, w.ID, name, value, commandLine)
}

// Secrets lists a workspace's credentials. It needs no key.
func (a *Admin) Secrets(ctx context.Context, workspace string) ([]vault.Credential, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return vault.New(a.pool, nil).List(ctx, w.ID)
}

// KnownSecret fails unless the workspace has a credential of this name. It needs no
// key.
func (a *Admin) KnownSecret(ctx context.Context, workspace, name string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return vault.New(a.pool, nil).Known(ctx, w.ID, []string{name})
}

// RemoveSecret forgets a credential of a workspace. It needs no key.
func (a *Admin) RemoveSecret(ctx context.Context, workspace, name string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return vault.New(a.pool, nil).Remove(ctx, w.ID, name, commandLine)
}

// RotateVault wraps everything in the database under the newest master key.
func (a *Admin) RotateVault(ctx context.Context) (vault.Rotation, error) {
	v, err := a.vault(ctx)
	if err != nil {
		return vault.Rotation{}, err
	}
	return v.Rotate(ctx)
}
