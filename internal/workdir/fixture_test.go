package workdir_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/workdir"
	"github.com/parley-server/parley/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store on a database of its own, and a session in a workspace.
type world struct {
	*workdir.Store
	dsn         string
	pool        *pgxpool.Pool
	ws, session uuid.UUID
	epoch       int64
}

func newWorld(t testing.TB, opt workdir.Options) *world {
	t.Helper()
	w := &world{dsn: dbtest.DSN(t)}
	w.pool = dbtest.Pool(t, w.dsn)
	w.ws = w.tenant(t, "acme")
	w.session = w.begin(t, w.ws)
	w.Store = workdir.New(w.pool, opt)
	return w
}

func (w *world) tenant(t testing.TB, slug string) uuid.UUID {
	t.Helper()
	ws, err := workspace.New(w.pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return ws.ID
}

// begin makes a session.
func (w *world) begin(t testing.TB, workspace uuid.UUID) uuid.UUID {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	w.exec(t, `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, id, workspace)
	return id
}

// claim is a new one on the world's session.
func (w *world) claim() workdir.Claim {
	w.epoch++
	return workdir.Claim{Workspace: w.ws, Session: w.session, Epoch: w.epoch}
}

// restore fills a new directory under a new claim.
func (w *world) restore(t testing.TB) (*workdir.Folder, string) {
	t.Helper()
	return w.restoreAs(t, w.claim())
}

func (w *world) restoreAs(t testing.TB, c workdir.Claim) (*workdir.Folder, string) {
	t.Helper()
	dir := t.TempDir()
	f, err := w.Restore(t.Context(), c, dir)
	if err != nil {
		t.Fatal(err)
	}
	return f, dir
}

// save saves a folder that has nothing to be skipped.
func save(t testing.TB, f *workdir.Folder) workdir.Saved {
	t.Helper()
	done, err := f.Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Skipped) > 0 {
		t.Errorf("skipped %q", done.Skipped)
	}
	return done
}

func (w *world) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, dir, path, content string) {
	t.Helper()
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree is everything that is in a directory, a line for each name.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%q %s", strings.TrimPrefix(path, dir+"/"), info.Mode())
		switch info.Mode().Type() {
		case 0:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " -> %q", target)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// same holds two directories against each other.
func same(t testing.TB, got, want string) {
	t.Helper()
	if g, w := tree(t, got), tree(t, want); g != w {
		t.Errorf("the folder is\n%.3000s\nand should be\n%.3000s", g, w)
	}
}
