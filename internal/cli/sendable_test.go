package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
)

// TestOnlyTextIsSent checks that input that cannot be sent unchanged is rejected, whatever its
// source.
func TestOnlyTextIsSent(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was sent", r.Method, r.URL) }))
	t.Cleanup(srv.Close)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + srv.URL, "PARLEY_WORKSPACE=test", "PARLEY_API_KEY=prl_x"}}
	const bad, id = "Gr\xfc\xdfe", "0192f0aa-0000-7000-8000-000000000001"
	object := `{"a":"` + bad + `"}`
	if err := os.WriteFile(filepath.Join(sh.dir, "bad.json"), []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin, names string
		args         []string
	}{
		{"", "The message", []string{"send", bad}},
		{bad, "stdin", []string{"send"}},
		{"", "--input ", []string{"send", "--skill", "x", "--input", "a=" + bad}},
		{"", "--input ", []string{"send", "--skill", "x", "--input", bad + "=a"}},
		{"", "--input ", []string{"send", "--skill", "x", "--input", `a:="` + bad + `"`}},
		{"", "--input ", []string{"skills", "run", "x", "--input", "b=c", "--input", "a=" + bad}},
		{"", "--input-json", []string{"send", "--skill", "x", "--input-json", object}},
		{"", "--input-json", []string{"send", "--skill", "x", "--input-json", "@bad.json"}},
		{object, "--input-json", []string{"send", "--skill", "x", "--input-json", "@-"}},
		{"", "The file of --schema", []string{"send", "--schema", "bad.json", "hi"}},
		{"", "--caller", []string{"send", "--caller", bad, "hi"}},
		{"", "--callback", []string{"send", "--callback", "https://listen.invalid/" + bad, "hi"}},
		{"", "--secret-input", []string{"send", "--secret-input", "A_B," + bad, "hi"}},
		{"", "--skill", []string{"send", "--skill", bad}},
		{"", "An argument", []string{"skills", "run", bad}},
		{"", "--caller", []string{"sessions", "list", "--caller", bad}},
		{"", "--reason", []string{"approvals", "deny", id, "--reason", bad}},
		{"", "--actor", []string{"approvals", "allow", id, "--actor", bad}},
		{"", "--pattern", []string{"approvals", "allow", id, "--pattern", bad}},
		{"", "The name of", []string{"files", "up", bad + ".txt"}},
	} {
		_, errs, code := sh.pipe(strings.NewReader(c.stdin), c.args...)
		if code != 2 || !strings.Contains(errs, "parley: "+c.names) || !strings.Contains(errs, "is not UTF-8.") {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
	}
	sh.environ = []string{"DATABASE_URL=" + dbtest.DSN(t)}
	sh.must("workspace", "create", "test")
	if _, errs, code := sh.run("keys", "create", "--name", bad); code != 2 || !strings.Contains(errs, "text in UTF-8") {
		t.Errorf("keys create: exit code %d, %s", code, errs)
	}
}

// TestNamesOfFilesMayHaveAnyBytes checks that file names may have any bytes, since they are not
// sent.
func TestNamesOfFilesMayHaveAnyBytes(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	folder := "Gr\xfc\xdfe"
	if err := os.Mkdir(filepath.Join(sh.dir, folder), 0o700); err != nil {
		need.Missing(t, "file names must be text on this system: %v", err)
	}
	for name, content := range map[string]string{"schema.json": `{"type":"object"}`, "input.json": `{"a":1}`, "a.txt": "x"} {
		if err := os.WriteFile(filepath.Join(sh.dir, folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := sh.must("send", "--schema", folder+"/schema.json", `@structured {"n":1}`); !strings.Contains(out, `"n": 1`) {
		t.Errorf("%q", out)
	}
	if _, errs, _ := sh.run("send", "--skill", "x", "--input-json", "@"+folder+"/input.json"); !strings.Contains(errs, "No active skill") {
		t.Errorf("%s", errs)
	}
	id := strings.TrimSpace(sh.must("files", "up", folder+"/a.txt"))
	sh.must("files", "down", id, "--dir", folder+"/down")
	if got, err := os.ReadFile(filepath.Join(sh.dir, folder, "down", "a.txt")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
}
