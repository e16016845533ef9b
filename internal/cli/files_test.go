package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestFilesGoUpAndDown(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	content := strings.Repeat("a,b,c\n", 100_000) // three chunks
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(sh.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(sh.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	write("report.csv", content)
	write("empty.txt", "")
	write("page.html", "<html>")
	write("run.sh", "#!/bin/sh")

	ids := strings.Fields(sh.must("files", "up", "report.csv", "empty.txt"))
	if len(ids) != 2 {
		t.Fatalf("%q", ids)
	}
	for range 2 { // no file is overwritten
		sh.must("files", "down", ids[0], "-o", "out")
	}
	if read("out/report.csv") != content || read("out/report (2).csv") != content {
		t.Error("the downloaded file differs from the uploaded one")
	}
	if out := sh.must("files", "down", ids[1]); out != "empty (2).txt\n" || read("empty (2).txt") != "" {
		t.Errorf("%q", out)
	}
	if out := sh.must("files", "list"); !strings.Contains(out, "report.csv") || !strings.Contains(out, "text/csv") ||
		!strings.Contains(out, ids[1]) || !strings.Contains(out, "600000") {
		t.Error(out)
	}
	var sent struct {
		Data []struct{ Status, Filename string }
	}
	if err := json.Unmarshal([]byte(sh.must("files", "up", "page.html", "--json")), &sent); err != nil || len(sent.Data) != 1 ||
		sent.Data[0].Status != "ready" {
		t.Errorf("%+v, %v", sent, err)
	}
	_, more, _ := sh.run("files", "list", "--direction", "in", "--limit", "1")
	next, ok := strings.CutPrefix(strings.TrimSpace(more), "There are more: parley ")
	if args := strings.Fields(next); !ok || !slices.Equal(args[:7], []string{"files", "list", "--direction", "in", "--limit", "1",
		"--cursor"}) {
		t.Errorf("the output continues with %q", more)
	} else if out := sh.must(args...); !strings.Contains(out, ids[1]) || strings.Contains(out, ids[0]) {
		t.Errorf("%s: %s", next, out)
	}
	if err := json.Unmarshal([]byte(sh.must("files", "list", "--json", "--limit", "1")), &sent); err != nil || len(sent.Data) != 1 ||
		sent.Data[0].Filename != "page.html" {
		t.Errorf("%+v, %v", sent, err)
	}
	for line, c := range map[string]struct {
		want string
		code int
	}{
		"files up run.sh":                      {"a system could execute it", 2},
		"files up none.txt":                    {"cannot be read", 2},
		"files up .":                           {"cannot be read", 2},
		"files up report.csv --mime image/png": {"looks like text/plain", 2},
		"files down 0192f0aa-0000-7000-8000-000000000001":           {"The file does not exist", 2},
		"files down nonsense":                                       {"not a UUID", 2},
		"files down --session 0192f0aa-0000-7000-8000-000000000001": {"does not exist in this workspace", 2},
		"files list --direction up":                                 {"direction must be one of in, out", 2},
	} {
		if _, errs, code := sh.run(strings.Fields(line)...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("parley %s: exit code %d, %s", line, code, errs)
		}
	}
}

// TestProducedFilesComeDown downloads the files that a turn produced, by their session. A file name
// that points out of the directory does not write outside it.
func TestProducedFilesComeDown(t *testing.T) {
	t.Parallel()
	sh, _, dsn := world(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	sh.must("send", "@text 1 delta\n@call attach_file {\"filename\":\"report.csv\",\"content\":\"a,b\\n\"}\n@text 1 delta", "--caller", "anna")
	var session string
	if err := pool.QueryRow(t.Context(), `SELECT id FROM sessions`).Scan(&session); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE files SET filename = '../../evil.csv'`); err != nil {
		t.Fatal(err)
	}
	out := sh.must("files", "down", "--session", session, "-o", "results")
	if out != filepath.Join("results", "evil.csv")+"\n" {
		t.Errorf("%q", out)
	}
	if data, err := os.ReadFile(filepath.Join(sh.dir, "results", "evil.csv")); err != nil || string(data) != "a,b\n" {
		t.Errorf("%q, %v", data, err)
	}
	if _, errs, code := sh.run("files", "down", "--session", session, "--name", "none.csv"); code != 1 ||
		!strings.Contains(errs, "No files match.") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
