package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

const token = "ghp_0123456789-&-abc"

func TestSecretsAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t), "PARLEY_WORKSPACE=test",
		"PARLEY_VAULT_KEY=" + vaultKey}}
	sh.must("workspace", "create", "test")

	said := ""
	set := func(stdin string, args ...string) (string, int) {
		out, errs, code := sh.pipe(strings.NewReader(stdin), append([]string{"secrets", "set"}, args...)...)
		said += out + errs
		return errs, code
	}
	if errs, code := set(token, "GITHUB_TOKEN"); code != 2 || !strings.Contains(errs, "--host api.example.com") {
		t.Errorf("a new secret without hosts: %d, %s", code, errs)
	}
	if errs, code := set(token+"\r\n", "GITHUB_TOKEN", "--host", "API.GitHub.com", "--host", "*.example.com:8443",
		"--in-body"); code != 0 || !strings.Contains(errs, "version 1") {
		t.Errorf("set: %d, %s", code, errs)
	}
	if errs, code := set(token+"-2\n", "GITHUB_TOKEN"); code != 0 || !strings.Contains(errs, "version 2") ||
		!strings.Contains(errs, "api.github.com") {
		t.Errorf("set another value: %d, %s", code, errs)
	}
	if errs, code := set("", "CRM_KEY", "--host", "crm.example.com", "--no-value"); code != 0 ||
		!strings.Contains(errs, "without a value yet") {
		t.Errorf("register: %d, %s", code, errs)
	}
	for what, c := range map[string]struct{ stdin, args, want string }{
		"a tab":        {token + "\t" + token, "CRM_KEY", "without control characters"},
		"nothing":      {"", "CRM_KEY --host crm.example.com", "at least 4 bytes"},
		"no file":      {"", "CRM_KEY --file none.pem", "none.pem"},
		"two sources":  {"", "CRM_KEY --host crm.example.com --file none.pem --no-value", "no-value"},
		"no host":      {"", "CRM_KEY --no-value", "--host is missing"},
		"surfaces":     {token, "CRM_KEY --in-query", "--host is missing"},
		"a URL":        {token, "CRM_KEY --host https://x.com", "without https://"},
		"a bad name":   {token, "crm-key --host x.com", "GITHUB_TOKEN"},
		"in arguments": {"", "CRM_KEY " + token, "is too much"},
	} {
		if errs, code := set(c.stdin, strings.Fields(c.args)...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s", what, code, errs)
		}
	}
	if _, errs, code := sh.run("secrets", "set", "CRM_KEY"); code != 2 || !strings.Contains(errs, "value is missing") {
		t.Errorf("without a terminal: %d, %s", code, errs)
	}

	// Lists and removals need no key.
	sh.environ = sh.environ[:2]
	var list struct{ Data []vault.Credential }
	out := sh.must("secrets", "list", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Data) != 2 || list.Data[0].HasValue || !list.Data[1].HasValue ||
		!list.Data[1].InBody {
		t.Errorf("list: %s, %v", out, err)
	}
	for what, answer := range map[string]string{"not confirmed": "n\n", "nobody there": ""} {
		if _, errs, code := sh.pipe(strings.NewReader(answer), "secrets", "rm", "GITHUB_TOKEN"); code != 2 ||
			!strings.Contains(errs, "permanently? [y/N]") || !strings.Contains(errs, "Nothing was removed.") {
			t.Errorf("%s: exit code %d, %s", what, code, errs)
		}
	}
	said += out + sh.must("secrets", "list") + sh.must("secrets", "rm", "CRM_KEY", "--yes")
	for _, want := range []string{"stored", "not yet", "*.example.com:8443, api.github.com", "body", "cli"} {
		if !strings.Contains(said, want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
	if strings.Contains(strings.ReplaceAll(said, `"`+token+`" is too much`, ""), token) {
		t.Errorf("a value is shown: %s", said)
	}
	if _, errs, code := sh.run("secrets", "rm", "CRM_KEY"); code != 2 || !strings.Contains(errs, "Registered are GITHUB_TOKEN") ||
		strings.Contains(errs, "[y/N]") {
		t.Errorf("removed twice: %d, %s", code, errs)
	}
	if _, errs, code := sh.pipe(strings.NewReader("yes\n"), "secrets", "rm", "GITHUB_TOKEN"); code != 0 ||
		!strings.Contains(errs, "Removed GITHUB_TOKEN.") {
		t.Errorf("remove: %d, %s", code, errs)
	}
	if _, errs, code := sh.run("secrets", "set", "A", "--host", "a.example.com", "--no-value"); code != 2 ||
		!strings.Contains(errs, "parley vault key") {
		t.Errorf("without a master key: %d, %s", code, errs)
	}
}

// TestWarningsAboutValues sets values that can be guessed or that have several lines.
func TestWarningsAboutValues(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t), "PARLEY_WORKSPACE=test",
		"PARLEY_VAULT_KEY=" + vaultKey}}
	sh.must("workspace", "create", "test")
	const guessable, writeLines = "a host that returns what it receives can reveal it", "has several lines"
	pem := "-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0BAQEF\r\n-----END PRIVATE KEY-----\r\n"
	file := filepath.Join(sh.dir, "key.pem")
	if err := os.WriteFile(file, []byte(pem), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin, args string
		warnings    string
	}{
		{"4711\n", "PIN --host a.example.com", guessable},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "FLAT --host a.example.com", guessable},
		{token + "\n", "TOKEN --host a.example.com", ""},
		{"", "LATER --host a.example.com --no-value", ""},
		{pem, "KEY --host a.example.com", writeLines},
		{pem, "KEY --host a.example.com --in-body", ""},
		{"", "KEY --file " + file, ""},
		{"", "OTHER --host a.example.com --file " + file, writeLines},
	} {
		_, errs, code := sh.pipe(strings.NewReader(c.stdin), append([]string{"secrets", "set"}, strings.Fields(c.args)...)...)
		if code != 0 || strings.Contains(errs, "Warning:") != (c.warnings != "") || !strings.Contains(errs, c.warnings) ||
			strings.Contains(errs, "4711") || strings.Contains(errs, "MIIE") {
			t.Errorf("%s: %d, %s", c.args, code, errs)
		}
	}
}

func TestMasterKeysAreRotated(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "vault.key")
	sh := shell{t: t, dir: dir, environ: []string{"DATABASE_URL=" + dsn, "PARLEY_VAULT_KEY_FILE=" + file}}
	put := func(keys ...string) {
		if err := os.WriteFile(file, []byte(strings.Join(keys, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nokey := shell{t: t, dir: dir}
	first, second := nokey.must("vault", "key"), nokey.must("vault", "key")
	if first == second {
		t.Fatal("the same key twice")
	}
	put(first)
	sh.must("workspace", "create", "test")
	if _, errs, code := sh.pipe(strings.NewReader(token), "secrets", "set", "TOKEN", "--host", "a.example.com"); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := sh.run("vault", "rotate"); code != 0 || !strings.Contains(errs, "0 values") {
		t.Errorf("nothing to rotate: %d, %s", code, errs)
	}
	put(second)
	if _, errs, code := sh.run("vault", "rotate"); code != 1 || !strings.Contains(errs, "do not fit the database: sealed under a master key") {
		t.Errorf("without the old key: %d, %s", code, errs)
	}
	put(second, first)
	id, _, _ := strings.Cut(first, ":")
	if _, errs, code := sh.run("vault", "rotate"); code != 0 || !strings.Contains(errs, "1 value is") || !strings.Contains(errs, id) {
		t.Errorf("rotate: %d, %s", code, errs)
	}
	put(second)
	if _, errs, code := sh.pipe(strings.NewReader(token), "secrets", "set", "TOKEN"); code != 0 {
		t.Errorf("without the old key: %s", errs)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var under string
	if err := conn.QueryRow(t.Context(), `SELECT string_agg(id, ' ') FROM vault_keys`).Scan(&under); err != nil ||
		under+":" != second[:len(under)+1] {
		t.Errorf("keys in use: %s, %v", under, err)
	}
}
