package workdir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// machine is a session's folder under random changes, saves that die anywhere, and moves to other
// machines.
type machine struct {
	*world
	t      *testing.T
	blade  *blade
	folder *workdir.Folder
	dir    string
	moves  int
	saved  string // content in the database
}

var (
	names    = []string{"a", "b", "a/b", "a/b/c", "d/e/f", "a.txt", "odd\xff\n", "odd\xff\n/ ", "link", "d/link", "large", "d/large"}
	contents = []string{"", "x", "y", "hello", strings.Repeat("chunk", 256<<10/5+1)[:256<<10], strings.Repeat("more", 70_000),
		strings.Repeat("most", 200_000)}
	targets = []string{"a", "../..", "/etc/passwd", "link", "no\xff"}
)

// free returns an unused path, with folders above it.
func (m *machine) free(r *rapid.T, root *os.Root, path string) string {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(path[:i]); err != nil || !info.IsDir() {
			m.ok(r, root.RemoveAll(path[:i]), root.Mkdir(path[:i], 0o755))
		}
	}
	m.ok(r, root.RemoveAll(path))
	return path
}

func (m *machine) ok(r *rapid.T, errs ...error) {
	for _, err := range errs {
		if err != nil {
			r.Fatal(err)
		}
	}
}

func (m *machine) path(r *rapid.T) string { return rapid.SampledFrom(names).Draw(r, "path") }

// change changes the folder as a command would.
func (m *machine) change(r *rapid.T) {
	root, err := os.OpenRoot(m.dir)
	m.ok(r, err)
	defer root.Close()
	path, content := m.path(r), []byte(contents[rapid.IntRange(0, len(contents)-1).Draw(r, "content")])
	info, err := root.Lstat(path)
	file := err == nil && info.Mode().IsRegular()
	switch what := rapid.SampledFrom([]string{"write", "write", "over", "link", "folder", "remove", "mode", "rename"}).Draw(r, "what"); {
	case what == "write":
		m.ok(r, root.WriteFile(m.free(r, root, path), content, 0o644))
	case what == "over" && file: // often only the time differs
		m.ok(r, root.WriteFile(path, content, 0o644))
	case what == "link":
		m.ok(r, root.Symlink(rapid.SampledFrom(targets).Draw(r, "target"), m.free(r, root, path)))
	case what == "folder":
		m.ok(r, root.Mkdir(m.free(r, root, path), 0o755))
	case what == "remove" && err == nil:
		m.ok(r, root.RemoveAll(path))
	case what == "mode" && file:
		m.ok(r, root.Chmod(path, rapid.SampledFrom([]os.FileMode{0o644, 0o755}).Draw(r, "mode")))
	case what == "rename" && file:
		if to := m.path(r); !strings.HasPrefix(path+"/", to+"/") && !strings.HasPrefix(to, path+"/") {
			m.free(r, root, to)
			if _, err := root.Lstat(path); err == nil { // not removed to make room
				m.ok(r, root.Rename(path, to))
			}
		}
	}
}

func (m *machine) save(r *rapid.T) {
	if _, err := m.folder.Save(m.t.Context()); err != nil {
		r.Fatal(err)
	}
	m.saved = tree(m.t, m.dir)
	m.check(r)
}

// die saves until the connection breaks or the caller gives up.
func (m *machine) die(r *rapid.T) {
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	var give func()
	if rapid.Bool().Draw(r, "give up") {
		give = cancel
	}
	m.blade.arm(rapid.IntRange(1, 25).Draw(r, "at"), give)
	_, err := m.folder.Save(ctx)
	m.blade.arm(0, nil)
	switch now := m.stored(m.t); {
	case err == nil || now == tree(m.t, m.dir): // the end of the transaction was reached; its response may be lost
		m.saved = tree(m.t, m.dir)
	}
	m.check(r)
}

// move continues on another machine that has restored the folder.
func (m *machine) move(r *rapid.T) {
	m.moves++
	m.dir = filepath.Join(filepath.Dir(m.dir), fmt.Sprint(m.moves))
	m.ok(r, os.Mkdir(m.dir, 0o755))
	f, err := m.Restore(m.t.Context(), m.claim(), m.dir)
	m.ok(r, err)
	old := m.folder
	m.folder = f
	if got := tree(m.t, m.dir); got != m.saved {
		r.Fatalf("restored\n%s\nof\n%s", got, m.saved)
	}
	if old != nil {
		if _, err := old.Save(m.t.Context()); err != workdir.ErrFenced {
			r.Fatalf("from the old machine: %v", err)
		}
	}
}

// stay continues with the folder under a newer claim, unless it differs from the stored one.
func (m *machine) stay(r *rapid.T) {
	ok, err := m.folder.Lease(m.t.Context(), m.claim())
	m.ok(r, err)
	if !ok {
		m.move(r)
	}
}

// sweep removes unnamed blobs, as if their time were over.
func (m *machine) sweep(r *rapid.T) {
	m.age(m.t)
	_, err := m.Sweep(m.t.Context())
	m.ok(r, err)
}

func (m *machine) check(r *rapid.T) {
	if now := m.stored(m.t); now != m.saved {
		r.Fatalf("in the database is\n%s\nand should be\n%s", now, m.saved)
	}
}

// age makes all loose blobs old enough to be removed.
func (w *world) age(t testing.TB) {
	t.Helper()
	w.exec(t, `UPDATE work_blobs SET loose_at = loose_at - interval '2 hours' WHERE loose_at IS NOT NULL`)
}

// The folder in the database is that of the last complete save, byte for byte, wherever a save
// dies, and a restore continues from there.
func TestAFolderSurvivesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	pool, blade := cuttable(t, w.dsn)
	w.Store = workdir.New(pool, workdir.Options{})
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{world: w, t: t, blade: blade, dir: filepath.Join(t.TempDir(), "0")}
		w.session, w.epoch = w.begin(t, w.ws), 0
		m.move(r)
		r.Repeat(map[string]func(*rapid.T){
			"change": m.change, "change more": m.change, "save": m.save, "die": m.die, "move": m.move, "stay": m.stay, "sweep": m.sweep,
		})
	})
	if blade.cuts == 0 {
		t.Error("no save was cut off")
	}
	w.age(t)
	if _, err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count(t, `SELECT (SELECT count(*) FROM work_blobs) - (SELECT count(DISTINCT sha256) FROM work_files)`); n != 0 {
		t.Errorf("%d blobs too many are left", n)
	}
	if n := w.count(t, `SELECT count(*) FROM work_blobs b WHERE size <> (SELECT coalesce(sum(octet_length(data)), 0) FROM work_chunks `+
		`WHERE blob_id = b.id)`); n != 0 {
		t.Errorf("%d blobs differ from their recorded size", n)
	}
}
