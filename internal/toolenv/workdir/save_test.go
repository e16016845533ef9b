package workdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// A folder is restored with all its files elsewhere, whatever their names are.
func TestAFolderComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a.txt", "Hello")
	write(t, dir, "again.txt", "Hello")
	write(t, dir, "empty", "")
	write(t, dir, "deep/er/still/there.txt", strings.Repeat("0123456789", 100_000))
	write(t, dir, "run.sh", "#!/bin/sh\n")
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "nothing in it"), 0o755))
	write(t, dir, "odd/\xff\xfe not UTF-8", "1")
	write(t, dir, "odd/new\nline", "2")
	write(t, dir, `odd/back\slash`, "3")
	write(t, dir, "odd/...", "4")
	write(t, dir, "odd/-rf *", "5")
	write(t, dir, "odd/"+strings.Repeat("n", 255), "6")
	long := strings.Repeat(strings.Repeat("d", 199)+"/", 18)
	root, err := os.OpenRoot(dir)
	must(t, err)
	must(t, root.MkdirAll(strings.TrimSuffix(long, "/"), 0o755))
	must(t, root.WriteFile(long+"far.txt", []byte("far"), 0o644))
	must(t, root.Close())
	must(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "out")))
	must(t, os.Symlink("../../..", filepath.Join(dir, "deep", "up")))
	must(t, os.Symlink("no\xffwhere", filepath.Join(dir, "dangling")))

	done := save(t, f)
	if done.Changed != done.Files {
		t.Errorf("%+v", done)
	}
	_, there := w.restore(t)
	same(t, there, dir)
	if n := w.count(t, `SELECT count(*) FROM work_blobs WHERE size = 5`); n != 1 {
		t.Errorf("one content is stored %d times", n)
	}
}

// Content that a workspace already has is not sent again, whichever of its sessions saves it.
func TestWhatIsThereIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	pool, blade := cuttable(t, w.dsn)
	w.Store = workdir.New(pool, workdir.Options{})
	foreign := w.tenant(t, "foreign")
	for _, c := range []struct {
		name  string
		world *world
		sends bool
	}{
		{"the first one", w, true},
		{"another session", &world{Store: w.Store, pool: w.pool, ws: w.ws, session: w.begin(t, w.ws)}, false},
		{"another workspace", &world{Store: w.Store, pool: w.pool, ws: foreign, session: w.begin(t, foreign)}, true},
	} {
		f, dir := c.world.restore(t)
		for _, name := range []string{"a", "b"} {
			write(t, dir, name+".small", strings.Repeat("small", 20_000))
			write(t, dir, name+".large", strings.Repeat("large", 100_000))
		}
		before := blade.sent.Load()
		save(t, f)
		sent := blade.sent.Load() - before
		if most := int64(620_000); c.sends && (sent < 600_000 || sent > most) || !c.sends && sent > 20_000 {
			t.Errorf("%s sends %d bytes", c.name, sent)
		}
	}
}

func TestOnlyWhatChangedIsSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "one")
	write(t, dir, "b", "two")
	write(t, dir, "c/d", "three")
	save(t, f)
	write(t, dir, "a", "1ne") // the same length as before
	must(t, os.Remove(filepath.Join(dir, "b")))
	must(t, os.Rename(filepath.Join(dir, "c"), filepath.Join(dir, "e")))
	if done := save(t, f); done.Changed != 6 || done.Files != 3 || done.Bytes != 8 {
		t.Errorf("%+v", done) // a, -b, -c, -c/d, e, e/d
	}
	if done := save(t, f); done.Changed != 0 || done.Files != 3 {
		t.Errorf("nothing has changed: %+v", done)
	}
	f, there := w.restore(t)
	same(t, there, dir)
	if done := save(t, f); done.Changed != 0 {
		t.Errorf("after a restore: %+v", done)
	}
	must(t, os.Remove(filepath.Join(there, "a")))
	must(t, os.Mkdir(filepath.Join(there, "a"), 0o755)) // a folder in place of a file
	write(t, there, "a/b", "two")
	must(t, os.RemoveAll(filepath.Join(there, "e")))
	must(t, os.Symlink("a", filepath.Join(there, "e")))
	save(t, f)
	_, again := w.restore(t)
	same(t, again, there)
}
