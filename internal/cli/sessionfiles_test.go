package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

func TestTheFilesOfASessionCanBeTakenOut(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	srv := serve(t, dsn, "127.0.0.1:0")
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	sh.must("workspace", "create", "one")
	remote := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + srv.url, "PARLEY_WORKSPACE=one",
		"PARLEY_API_KEY=" + strings.TrimSpace(sh.must("keys", "create", "--name", "reader", "--scope", "sessions:read"))}}
	pool := dbtest.Pool(t, dsn)
	c := workdir.Claim{Session: uuid.Must(uuid.NewV7()), Epoch: 1}
	if err := pool.QueryRow(t.Context(), `INSERT INTO sessions (id, workspace_id) SELECT $1, id FROM workspaces RETURNING workspace_id`,
		c.Session).Scan(&c.Workspace); err != nil {
		t.Fatal(err)
	}
	id, dir := c.Session.String(), t.TempDir()
	if _, errs, code := sh.run("sessions", "files", id); code != 0 || !strings.Contains(errs, "has no files") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	f, err := workdir.New(pool, workdir.Options{}).Restore(t.Context(), c, dir)
	if err != nil {
		t.Fatal(err)
	}
	content, odd := "\x00\xff binary\n", "odd  name\x1b[31m\xff"
	for name, mode := range map[string]os.FileMode{"report.bin": 0o644, odd: 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Save(t.Context()); err != nil {
		t.Fatal(err)
	}

	list := sh.must("sessions", "files", id)
	for _, want := range []string{"report.bin", "link", "/etc/passwd", `"odd  name\x1b[31m\xff"`, "program", "10"} {
		if !strings.Contains(strings.Join(strings.Fields(list), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
	if over := remote.must("sessions", "files", id); over != list {
		t.Errorf("over the API:\n%s\non the database:\n%s", over, list)
	}
	var listed struct{ Data []workdir.Entry }
	if err := json.Unmarshal([]byte(sh.must("sessions", "files", id, "--json")), &listed); err != nil || len(listed.Data) != 3 {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, e := range listed.Data {
		if e.Kind != workdir.File {
			continue
		}
		for _, sh := range []shell{sh, remote} {
			if got := sh.must("sessions", "files", id, "get", e.Path); got != content {
				t.Errorf("%s: %q", e.Path, got)
			}
		}
	}
	if got := sh.must("sessions", "files", id, "get", odd); got != content {
		t.Errorf("by its bytes: %q", got)
	}
	sh.must("workspace", "create", "two")
	for line, want := range map[string]string{
		"files " + id + " get nothing -w one":    `no file "nothing"`,
		"files " + id + " get link -w one":       `no file "link"`,
		"files " + id + " get report.bin -w two": "does not exist in this workspace",
		"files " + id + " -w two":                "does not exist in this workspace",
		"files " + uuid.NewString() + " -w one":  "does not exist in this workspace",
		"files x -w one":                         "is not a session id",
		"files":                                  "SESSION is missing",
		"files " + id + " put x":                 "nothing, or get PATH",
		"files " + id + " get":                   "PATH is missing",
	} {
		if _, errs, code := sh.run(append([]string{"sessions"}, strings.Fields(line)...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("sessions %s: exit code %d, %s", line, code, errs)
		}
	}
	sh.must("sessions", "erase", id, "--yes", "-w", "one")
	if _, errs, code := sh.run("sessions", "files", id, "-w", "one"); code != 0 || !strings.Contains(errs, "has no files") {
		t.Errorf("erased: exit code %d, %s", code, errs)
	}
	var blobs int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM work_blobs`).Scan(&blobs); err != nil || blobs != 0 {
		t.Errorf("%d blobs are left, %v", blobs, err)
	}
}
