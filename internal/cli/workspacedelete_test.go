package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/wait"
)

// tablesWith lists the tables that have a given column, without partitions.
const tablesWith = `SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace`

func TestADeletedWorkspaceLeavesNothing(t *testing.T) {
	t.Parallel()
	sh, _, dsn := world(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	count := func(sql string, args ...any) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return n
	}
	sh.must("workspace", "create", "other")
	sh.must("wiki", "put", "--workspace", "other", "wiki/kept.md", fileOf(t, sh, "kept.md", "kept"))

	sh.must("send", "@say a word of marmalade", "--caller", "bob")
	sh.must("send", "--callback", "https://listen.invalid/", "@say marmalade")
	sh.must("wiki", "put", "wiki/jam.md", fileOf(t, sh, "jam.md", "marmalade"))
	sh.must("files", "upload", fileOf(t, sh, "jam.txt", "marmalade"))
	sh.must("secrets", "set", "JAM", "--host", "example.com", "--file", fileOf(t, sh, "secret", "marmalade-secret"))
	sh.must("skills", "create", "jam")
	sh.must("skills", "push", "jam")
	sh.must("permissions", "update", "bash", "deny")
	sh.must("allowlist", "create", "wiki_write(jam/**)")
	sh.must("egress", "create", "example.com")
	sh.must("keys", "webhook-token", "create")
	running := sh.start("send", "@say hello\n@wait 10m", "--caller", "eve", "--output", "stream-json")
	running.out.wait(t, "hello")

	var id string
	if err := conn.QueryRow(t.Context(), `SELECT id::text FROM workspaces WHERE slug = 'test'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), tablesWith, "workspace_id")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 15 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	if _, errs, code := sh.pipe(strings.NewReader("n\n"), "workspace", "delete", "test"); code != 2 ||
		!strings.Contains(errs, "Nothing was deleted.") {
		t.Errorf("not confirmed: exit code %d: %s", code, errs)
	}
	if count(`SELECT count(*) FROM documents WHERE workspace_id::text = $1`, id) != 1 {
		t.Fatal("it was already deleted")
	}
	if _, errs, code := sh.pipe(strings.NewReader("yes\n"), "workspace", "delete", "test"); code != 0 ||
		!strings.Contains(errs, "Canceled 1 turn.") || !strings.Contains(errs, "Deleted the workspace test and its 3 sessions.") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, table := range tables {
		if table == "admin_log" { // stays, without the content of documents
			continue
		}
		if n := count(`SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()+` WHERE workspace_id::text = $1`, id); n != 0 {
			t.Errorf("%s has %d rows of the workspace", table, n)
		}
	}
	for _, sql := range []string{
		`SELECT count(*) FROM workspaces WHERE slug = 'test'`, `SELECT count(*) FROM file_uploads`, `SELECT count(*) FROM file_chunks`,
		`SELECT count(*) FROM admin_log WHERE before::text LIKE '%marmalade%' OR after::text LIKE '%marmalade%'`,
		`SELECT count(*) FROM events WHERE data::text LIKE '%marmalade%' OR delta`,
		`SELECT count(*) FROM river_job WHERE args::text LIKE '%marmalade%'`,
	} {
		if n := count(sql); n != 0 {
			t.Errorf("%s: %d", sql, n)
		}
	}
	if code := wait.Receive(t, "the exit code", running.code); code == 0 {
		t.Errorf("the reader of the running turn ended with exit code 0: %s", running.out)
	}
	if _, _, code := sh.run("send", "hello"); code != 4 {
		t.Errorf("the key of a deleted workspace: exit code %d", code)
	}
	if out := sh.must("wiki", "show", "--workspace", "other", "wiki/kept.md"); out != "kept" {
		t.Errorf("the other workspace has %q", out)
	}
	if _, errs, code := sh.run("workspace", "delete", "test", "--yes"); code != 2 ||
		!strings.Contains(errs, "Workspace \"test\" does not exist") {
		t.Errorf("again: exit code %d: %s", code, errs)
	}
	sh.must("workspace", "create", "test") // its name is free again
}

// TestADeletedWorkspaceLeavesNoJob checks that queued jobs are deleted, since workers would retry
// them forever.
func TestADeletedWorkspaceLeavesNoJob(t *testing.T) {
	t.Parallel()
	sh, _, dsn := world(t, "PARLEY_WORKERS=0")
	queued := sh.start("send", "hello", "--output", "stream-json")
	queued.out.wait(t, `"open"`)
	sh.must("workspace", "delete", "test", "--yes")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var jobs int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'turn'`).Scan(&jobs); err != nil || jobs != 0 {
		t.Errorf("%d jobs are left, %v", jobs, err)
	}
	if code := wait.Receive(t, "the exit code", queued.code); code == 0 {
		t.Errorf("the reader of the queued turn ended with exit code 0: %s", queued.out)
	}
}

// fileOf writes a file into the shell's directory and returns its name.
func fileOf(t *testing.T, sh shell, name, content string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(sh.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
