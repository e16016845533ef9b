package app_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// keyFile writes keys to a file with a mode.
func keyFile(t *testing.T, mode fs.FileMode, keys ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vault.key")
	if err := os.WriteFile(path, []byte("# newest first\n"+strings.Join(keys, "\n")+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServeWantsTheKeysThatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	first, second := vault.GenerateKey(), vault.GenerateKey()
	start := func(keys ...string) error {
		_, stop, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_VAULT_KEY=",
			"PARLEY_VAULT_KEY_FILE="+keyFile(t, 0o600, keys...))
		if err != nil {
			return err
		}
		return stop()
	}
	if err := start(first); err != nil {
		t.Fatal(err)
	}
	id, text, _ := strings.Cut(first, ":")
	_, other, _ := strings.Cut(second, ":")
	for what, keys := range map[string][]string{"another key": {second}, "another key of that id": {id + ":" + other}} {
		err := start(keys...)
		if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(err.Error(), id) || strings.Contains(err.Error()+e.Do, text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := start(second, first); err != nil {
		t.Errorf("a new key first: %v", err)
	}
	if err := start(first); err == nil {
		t.Error("started without the key that seals now")
	}
}

func TestAKeyFileThatOthersMayReadIsRefused(t *testing.T) {
	t.Parallel()
	key := vault.GenerateKey()
	_, text, _ := strings.Cut(key, ":")
	for mode, ok := range map[fs.FileMode]bool{0o400: true, 0o600: true, 0o640: true, 0o440: true, 0o644: false, 0o660: false, 0o604: false,
		0o601: false} {
		_, err := app.Load(app.Sources{Environ: []string{"PARLEY_VAULT_KEY_FILE=" + keyFile(t, mode, key)}})
		if ok != (err == nil) || !ok && (!strings.Contains(err.Error(), "chmod 600") || strings.Contains(err.Error(), text)) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	_, err := app.Load(app.Sources{Environ: []string{"PARLEY_VAULT_KEY=" + text}})
	if err == nil || strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "PARLEY_VAULT_KEY: key 1 is not id:base64") {
		t.Errorf("a key without an id: %v", err)
	}
}

func TestAKeyInTheEnvironmentIsWarnedAbout(t *testing.T) {
	t.Parallel()
	for environ, warned := range map[string]bool{"PARLEY_VAULT_KEY=" + vaultKey: true, "PARLEY_VAULT_KEY= PARLEY_VAULT_KEY_FILE=" +
		keyFile(t, 0o600, vaultKey): false} {
		var log bytes.Buffer
		_, stop, err := serve(t, app.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, append(strings.Fields(environ),
			"DATABASE_URL="+dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0")...)
		if err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "PARLEY_VAULT_KEY is in the environment"); got != warned || strings.Contains(log.String(),
			vaultKey[10:]) {
			t.Errorf("%.18s: %s", environ, &log)
		}
	}
}

// TestDevelopmentMakesItsOwnKeyOnce checks the generated key, and what happens when it is lost.
func TestDevelopmentMakesItsOwnKeyOnce(t *testing.T) {
	t.Parallel()
	dsn, dir := dbtest.DSN(t), filepath.Join(t.TempDir(), ".parley")
	file := filepath.Join(dir, "vault", "keys")
	start := func() error {
		_, stop, err := serve(t, app.Options{DevDir: dir}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_VAULT_KEY=")
		if err != nil {
			return err
		}
		return stop()
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, made) {
		t.Errorf("another key: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*app.StartError](start()); !ok {
		t.Error("started without the key of its database")
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new key was made for a database that has one: %v", err)
	}
}
