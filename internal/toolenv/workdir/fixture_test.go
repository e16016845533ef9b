package workdir_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "15"); err != nil { // each has dozens of steps; -rapid.checks overrides it
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

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

// begin creates a session.
func (w *world) begin(t testing.TB, workspace uuid.UUID) uuid.UUID {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	w.exec(t, `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, id, workspace)
	return id
}

// claim returns a new claim on the world's session.
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

// save saves a folder without anything to skip.
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

// tree lists a directory, a line for each name.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		var content []byte
		target := ""
		switch info.Mode().Type() {
		case 0:
			content, err = os.ReadFile(path)
		case fs.ModeSymlink:
			target, err = os.Readlink(path)
		}
		lines = append(lines, line(strings.TrimPrefix(path, dir+"/"), info.Mode(), content, target))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func line(path string, mode fs.FileMode, content []byte, target string) string {
	return fmt.Sprintf("%q %s %d %x %q %q", path, mode, len(content), sha256.Sum256(content), content[:min(len(content), 20)], target)
}

// stored lists the folder in the database, in the format of tree.
func (w *world) stored(t testing.TB) string {
	t.Helper()
	list, err := w.List(t.Context(), w.ws, w.session)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range list {
		mode := map[workdir.Kind]fs.FileMode{workdir.File: 0o644, workdir.Dir: fs.ModeDir | 0o755,
			workdir.Symlink: fs.ModeSymlink | 0o777}[e.Kind]
		if e.Executable {
			mode |= 0o111
		}
		var content bytes.Buffer
		if e.Kind == workdir.File {
			c, err := w.Open(t.Context(), w.ws, w.session, e.Path)
			if err == nil {
				err = c.Copy(t.Context(), &content)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		lines = append(lines, line(e.Path, mode, content.Bytes(), e.Target))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// same compares two directories.
func same(t testing.TB, got, want string) {
	t.Helper()
	equal(t, tree(t, got), tree(t, want))
}

func equal(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the folder is\n%.3000s\nand should be\n%.3000s", got, want)
	}
}
