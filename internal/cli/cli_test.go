package cli_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// commands finds every command by its help.
func commands(t *testing.T, sh shell, path ...string) [][]string {
	t.Helper()
	all := [][]string{path}
	help := sh.must(append(append([]string{}, path...), "--help")...)
	_, list, ok := strings.Cut(help, "\nCommands:\n")
	if !ok {
		return all
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.SplitSeq(strings.TrimRight(list, "\n"), "\n") {
		all = append(all, commands(t, sh, append(append([]string{}, path...), strings.Fields(line)[0])...)...)
	}
	return all
}

func TestEveryHelpBeginsWithExamples(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir()}
	all := commands(t, sh)
	if len(all) < 20 {
		t.Fatalf("found only %v", all)
	}
	for _, path := range all {
		help := sh.must(append(path, "--help")...)
		examples, text, _ := strings.Cut(help, "\n\n")
		lines := strings.Split(examples, "\n")
		if lines[0] != "Examples:" || len(lines) < 3 || len(lines) > 4 {
			t.Errorf("parley %s --help begins with %q", strings.Join(path, " "), examples)
		}
		if first, _, _ := strings.Cut(text, "\n"); first == "" || unicode.IsLower(rune(first[0])) {
			t.Errorf("parley %s --help: the text begins with %q", strings.Join(path, " "), first)
		}
	}
}

func TestMistypedWordsGetSuggestions(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=http://127.0.0.1:1"}}
	for line, want := range map[string]string{
		"sedn hello":                     "Did you mean parley send?",
		"keys rotat":                     "Did you mean parley keys rotate?",
		"serve --lisen :1":               "Did you mean --listen?",
		"keys frobnicate":                "See parley keys --help.",
		"serve --workers many":           "whole number",
		"keys create":                    "--name",
		"keys rotate":                    "ID is missing",
		"send --output xml hi":           "text, json, stream-json",
		"serve --workers 1 --no-workers": "none of the others can be",
	} {
		_, errs, code := sh.run(strings.Fields(line)...)
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("parley %s: exit code %d, %s", line, code, errs)
		}
	}
}

func TestConfigPrintShowsSourcesAndNoSecrets(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"OPENAI_API_KEY=sk-secret", "PARLEY_WORKERS=3"}}
	out := sh.must("config", "print")
	for _, want := range []string{"PARLEY_WORKERS", "environment", "[secret]", "not set"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out+sh.must("config", "print", "--json"), "sk-secret") {
		t.Error("the key shows")
	}
	if out, errs, code := sh.run("config", "print", "--config", "none.env"); code != 2 || !strings.Contains(errs, "none.env") || out == "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestKeysFromBirthToDeath(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	text, errs, code := sh.run("keys", "create", "--name", "web", "--scope", "chat,sessions:read", "--expires", "30d")
	key := strings.TrimSpace(text)
	if code != 0 || !strings.HasPrefix(key, "prl_") || strings.ContainsAny(key, " \n") || strings.Contains(errs, key) {
		t.Fatalf("stdout %q, stderr %q", text, errs)
	}
	id := key[4:12]
	as := func(key string) int {
		sh := sh
		sh.environ = append(append([]string{}, sh.environ...), "PARLEY_API_KEY="+key)
		_, _, code := sh.run("send", "@say hi")
		return code
	}
	if code := as(key); code != 0 {
		t.Errorf("a new key: exit code %d", code)
	}
	var list struct{ Data []map[string]any }
	if err := json.Unmarshal([]byte(sh.must("keys", "list", "--json")), &list); err != nil || len(list.Data) != 2 {
		t.Errorf("%v: %v", err, list.Data)
	}
	if strings.Contains(sh.must("keys", "list"), key[12:44]) {
		t.Error("the list shows the secret")
	}
	second := strings.TrimSpace(sh.must("keys", "rotate", id, "--overlap", "1h"))
	if as(key) != 0 || as(second) != 0 {
		t.Error("both keys work during the overlap")
	}
	if _, _, code := sh.run("keys", "rotate", id); code != 2 {
		t.Errorf("rotated twice: exit code %d", code)
	}
	third := strings.TrimSpace(sh.must("keys", "rotate", second, "--overlap", "now"))
	for as(second) != 4 { // a server caches a key for less than a second
	}
	if as(third) != 0 {
		t.Error("the successor does not work")
	}
	second = third
	if _, errs, code := sh.run("keys", "revoke", second[4:12]); code != 2 || !strings.Contains(errs, "No key was revoked.") {
		t.Errorf("without consent: exit code %d, %s", code, errs)
	}
	sh.must("keys", "revoke", second[4:12], "--yes")
	if _, _, code := sh.run("keys", "revoke", second[4:12], "--yes"); code != 2 {
		t.Errorf("revoked twice: exit code %d", code)
	}
	if _, errs, code := sh.run("keys", "create", "--name", "x", "--scope", "chatt"); code != 2 ||
		!strings.Contains(errs, "Did you mean chat?") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestWebhookTokenFromBirthToDeath(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if _, _, code := sh.run("keys", "webhook-token", "show-status"); code != 2 {
		t.Errorf("status of none: exit code %d", code)
	}
	text, errs, code := sh.run("keys", "webhook-token", "create")
	token := strings.TrimSpace(text)
	if code != 0 || !strings.HasPrefix(token, "whtok_") || strings.Contains(errs, token) {
		t.Fatalf("stdout %q, stderr %q", text, errs)
	}
	sh.environ = append(sh.environ, "PARLEY_API_KEY="+token)
	sh.must("send", "@say hi")
	if _, errs, code := sh.run("keys", "webhook-token", "create"); code != 2 || !strings.Contains(errs, "revoke it, then create another") {
		t.Errorf("a second one: exit code %d: %s", code, errs)
	}
	status := sh.must("keys", "webhook-token", "show-status")
	if !strings.HasPrefix(status, token[:14]+"…"+token[len(token)-4:]+"  active, chat, sessions:read;") ||
		strings.Contains(status+sh.must("keys", "list"), token[14:46]) {
		t.Errorf("status: %s", status)
	}
	if _, _, code := sh.run("keys", "rotate", token[6:14]); code != 2 {
		t.Errorf("rotated: exit code %d", code)
	}
	sh.must("keys", "webhook-token", "revoke", "--yes")
	for code := 0; code != 4; _, _, code = sh.run("send", "@say hi") { // a server caches it for less than a second
	}
}

func TestDocumentsGoInAndComeOut(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	if _, errs, code := sh.run("wiki", "list"); code != 2 || !strings.Contains(errs, "parley workspace create") {
		t.Errorf("no workspace: exit code %d: %s", code, errs)
	}
	sh.must("workspace", "create", "one", "--instructions", "Be kind.")
	if err := os.WriteFile(filepath.Join(sh.dir, "tea.md"), []byte("# Tea\n\nAt four.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.must("wiki", "put", "wiki/tea.md", "tea.md") // the only workspace needs no name
	if got := sh.must("wiki", "get", "wiki/tea.md"); got != "# Tea\n\nAt four.\n" {
		t.Errorf("read %q", got)
	}
	if got := sh.must("wiki", "list", "wiki/"); !strings.Contains(got, "Tea") {
		t.Errorf("list %q", got)
	}
	if _, errs, code := sh.run("wiki", "get", "wiki/tee.md"); code != 2 || !strings.Contains(errs, "wiki/tea.md") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	sh.must("workspace", "create", "two")
	if _, errs, code := sh.run("wiki", "list"); code != 2 || !strings.Contains(errs, "one, two") {
		t.Errorf("two workspaces: exit code %d: %s", code, errs)
	}
	if got := sh.must("wiki", "list", "-w", "two", "--json"); !strings.Contains(got, `"data": []`) {
		t.Errorf("an empty list: %s", got)
	}
	if _, _, code := sh.run("workspace", "create", "two"); code != 2 {
		t.Errorf("made twice: exit code %d", code)
	}
}

func TestMigrateTellsAndDoes(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates a database")
	dsn := dbtest.Empty(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	out, errs, code := sh.run("migrate", "status")
	if code != 1 || !strings.Contains(out, "missing") || !strings.Contains(errs, "parley migrate up") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	sh.must("migrate", "up")
	if out := sh.must("migrate", "status"); strings.Contains(out, "missing") {
		t.Errorf("after up: %s", out)
	}
	if _, errs, _ := sh.run("migrate", "up"); !strings.Contains(errs, "up to date") {
		t.Errorf("again: %s", errs)
	}
	if _, err := dbtest.Pool(t, dsn).Exec(t.Context(), "INSERT INTO lineage (system_identifier, timeline) VALUES (1, '00000001') ON "+
		"CONFLICT (one_row) DO UPDATE SET system_identifier = 1"); err != nil {
		t.Fatal(err)
	}
	sh.must("migrate", "status") // only reads
	for i := range 2 {           // the first command that may write to a restored database reports that it moved the ids
		if _, errs, code := sh.run("workspace", "list"); code != 0 || strings.Contains(errs, "event ids continue far ahead") != (i == 0) {
			t.Errorf("command %d after a restore: exit code %d, %s", i+1, code, errs)
		}
	}
}

func TestDevResetAsksFirst(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir()}
	dir := filepath.Join(sh.dir, ".parley")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"", "\n", "no\n", "nyes\n"} {
		if _, _, code := sh.pipe(strings.NewReader(answer), "dev", "reset"); code != 2 {
			t.Errorf("%q: exit code %d", answer, code)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal("it was deleted without consent")
	}
	if _, errs, code := sh.pipe(strings.NewReader("y\n"), "dev", "reset"); code != 0 {
		t.Error(errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it still exists")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	sh := shell{t: t}
	if out := sh.must("version"); !strings.HasPrefix(out, "parley v") {
		t.Errorf("version: %q", out)
	}
	var b struct{ Version string }
	if err := json.Unmarshal([]byte(sh.must("version", "--json")), &b); err != nil || b.Version == "" {
		t.Errorf("%v: %+v", err, b)
	}
}

func TestAStartThatWaitsSaysSo(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=postgres://127.0.0.1:1/parley?sslmode=disable",
		"PARLEY_VAULT_KEY=" + vaultKey}}
	k := sh.start("serve")
	k.errs.wait(t, "PostgreSQL cannot be reached")
	if text := k.errs.String(); !strings.Contains(text, "wait for the database") {
		t.Errorf("%s", text)
	}
	k.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", k.code); code != 0 {
		t.Errorf("exit code %d: %s", code, k.errs)
	}
}

func TestReadyIsSaidByParleyAlone(t *testing.T) {
	t.Parallel()
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<h1>Log in</h1>")) }))
	defer login.Close()
	sh := shell{t: t, dir: t.TempDir()}
	if _, errs, code := sh.run("ready", "--url", login.URL); code != 5 || !strings.Contains(errs, "is not from Parley: <h1>Log in") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestCtrlCEndsAStartThatWaits(t *testing.T) {
	t.Parallel()
	// A server that accepts connections and sends nothing.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=postgres://" + l.Addr().String() + "/parley?sslmode=disable",
		"PARLEY_VAULT_KEY=" + vaultKey}}
	k := sh.start("serve")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	k.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", k.code); code != 0 || !strings.HasSuffix(k.errs.String(), "level=INFO msg=stopped\n") ||
		strings.Contains(k.errs.String(), "Interrupted") {
		t.Errorf("exit code %d: %s", code, k.errs)
	}
}
