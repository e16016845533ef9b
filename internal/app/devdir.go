package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-server/parley/internal/devdb"
)

// DevDir is the directory of `serve --dev`, below the current directory.
const DevDir = ".parley"

// devDatabase is the database in the private PostgreSQL.
const devDatabase = "parley"

func devPostgres(dir string) string { return filepath.Join(dir, "pg") }
func devEnvFile(dir string) string  { return filepath.Join(dir, "dev.env") }

// DevEnv is the content of dev.env, which `serve --dev` writes for shells.
type DevEnv struct{ URL, Workspace, APIKey, DatabaseURL string }

// writeFile replaces dev.env atomically: a shell never sources half of it.
func (e DevEnv) writeFile(dir string) error {
	var b strings.Builder
	for _, line := range []envLine{
		{name: "PARLEY_URL", value: e.URL}, {name: "PARLEY_WORKSPACE", value: e.Workspace},
		{name: "PARLEY_API_KEY", value: e.APIKey}, {name: "PARLEY_DATABASE_URL", value: e.DatabaseURL},
	} {
		quote := "'"
		if strings.Contains(line.value, quote) {
			quote = `"`
		}
		fmt.Fprintf(&b, "export %s=%s%s%s\n", line.name, quote, line.value, quote)
	}
	tmp := devEnvFile(dir) + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the development settings: %w", err)
	}
	if err := os.WriteFile(tmp, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the development settings: %w", err)
	}
	if err := os.Rename(tmp, devEnvFile(dir)); err != nil {
		return fmt.Errorf("write the development settings: %w", err)
	}
	return nil
}

// ResetDev deletes the development data. It fails while a server uses them.
func ResetDev(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(devPostgres(dir)); err == nil {
		if err := devdb.Remove(ctx, devPostgres(dir)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("delete %s: %w", dir, err)
	}
	return nil
}
