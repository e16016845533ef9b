package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestVerifyNeedsTheServersKeys checks the remedy for missing keys: a new key verifies nothing.
func TestVerifyNeedsTheServersKeys(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t)}}
	_, errs, code := sh.run("audit", "verify")
	if code != 2 || !strings.Contains(errs, "--public-key") || strings.Contains(errs, "Make one") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestTheLogIsVerifiedAtTheCommandLine changes an event behind the server's back.
func TestTheLogIsVerifiedAtTheCommandLine(t *testing.T) {
	t.Parallel()
	sh, _, dsn := world(t)
	sh.must("send", "@say verified")
	sh.must("workspace", "create", "other")
	var shown struct {
		Data struct {
			Summary  struct{ Links, Events, Heads int }
			Findings []struct{ Kind, Text string }
			Ignored  []struct {
				File string
				Line int
			} `json:"ignored_heads"`
		}
	}
	verify := func(args ...string) (errs string, code int) {
		t.Helper()
		out, errs, code := sh.run(append([]string{"audit", "verify", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		return errs, code
	}
	wait.For(t, "the turn has a link", func() bool {
		_, _, code := sh.run("audit", "verify")
		return code == 0
	})
	if errs, code := verify(); code != 0 || shown.Data.Summary.Links != 1 {
		t.Errorf("exit code %d: %s, %+v", code, errs, shown)
	}
	public := filepath.Join(sh.dir, "parley.pub")
	if err := os.WriteFile(public, []byte(sh.must("audit", "public-key")), 0o600); err != nil {
		t.Fatal(err)
	}
	if errs, code := verify("--public-key", "@"+public, "--since", "2020-01-01", "--workspace", "test"); code != 0 ||
		shown.Data.Summary.Events == 0 {
		t.Errorf("exit code %d: %s, %+v", code, errs, shown)
	}
	for line, want := range map[string]string{
		"--since yesterday":  "is not a time",
		"--public-key x":     "The public key is invalid",
		"--session bob":      "is not a session id",
		"--heads no.such":    "no.such",
		"--heads parley.pub": "The file of heads is invalid",
		"--heads -":          "No heads found in -",
		"unexpected":         "is too much",
	} {
		if _, errs, code := sh.run(append([]string{"audit", "verify"}, strings.Fields(line)...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
	for _, line := range []string{"--since 2999-01-01", "--since 2999-01-01 --json", "--session 0192f0aa-0000-7000-8000-000000000001",
		"--workspace other"} {
		if out, errs, code := sh.run(append([]string{"audit", "verify"}, strings.Fields(line)...)...); code != 1 || out != "" ||
			!strings.Contains(errs, "Nothing was verified: no link") {
			t.Errorf("%s: exit code %d: %s%s", line, code, out, errs)
		}
	}
	objects := filepath.Join(sh.dir, "heads")
	if err := os.MkdirAll(filepath.Join(objects, "2026-11-26"), 0o700); err != nil {
		t.Fatal(err)
	}
	heads := filepath.Join(objects, "2026-11-26", "1.json")
	if err := os.WriteFile(heads, []byte(sh.must("audit", "head")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{heads, objects} {
		if errs, code := verify("--heads", path); code != 0 || shown.Data.Summary.Heads != 1 {
			t.Errorf("exit code %d: %s, %+v", code, errs, shown)
		}
	}
	if out, errs, code := sh.pipe(strings.NewReader(sh.must("audit", "head")), "audit", "verify", "--heads", "-"); code != 0 ||
		!strings.Contains(errs, "Compared with 1 head. The newest is of link ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	whole, err := os.ReadFile(heads)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(objects, "torn.jsonl")
	if err := os.WriteFile(torn, slices.Concat(whole[:50], []byte("\n"), whole, whole[:70]), 0o600); err != nil {
		t.Fatal(err)
	}
	if errs, code := verify("--heads", objects); code != 0 || shown.Data.Summary.Heads != 1 || len(shown.Data.Ignored) != 2 ||
		shown.Data.Ignored[1].Line != 3 || shown.Data.Ignored[1].File != torn {
		t.Errorf("exit code %d: %s, %+v", code, errs, shown)
	}
	if _, errs, code := sh.run("audit", "verify", "--heads", torn); code != 0 ||
		!strings.Contains(errs, "Ignored the head in line 1 of "+torn+": its end is missing.\nIgnored the head in line 3") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := sh.pipe(bytes.NewReader(whole[:50]), "audit", "verify", "--heads", "-"); code != 2 ||
		!strings.Contains(errs, "Ignored the head in line 1 of stdin") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	if _,
		err := db.Exec(t.Context(),
		`SET session_replication_role = replica; UPDATE events SET data = '{"v":1,"text":"forged"}' WHERE kind = 'text'`); err != nil {
		t.Fatal(err)
	}
	if _, code := verify(); code != 1 || len(shown.Data.Findings) != 1 || shown.Data.Findings[0].Kind != "changed" {
		t.Errorf("exit code %d: %+v", code, shown)
	}
	if out, errs, code := sh.run("audit", "verify"); code != 1 || !strings.Contains(out, "(text) was changed") ||
		!strings.Contains(errs, "1 difference.") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
