package workdir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// hole makes a sparse file with this size and no data.
func hole(t testing.TB, dir, path string, size int64) {
	t.Helper()
	write(t, dir, path, "")
	must(t, os.Truncate(filepath.Join(dir, path), size))
}

// A save beyond a limit stores nothing and keeps the previous save. The error names the limit, the
// amount and the remedy.
func TestLimits(t *testing.T) {
	t.Parallel()
	slow.Test(t, "fills folders")
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("n", 249)+"/", 16), "/")
	for name, c := range map[string]struct {
		opt    workdir.Options
		fill   func(t *testing.T, dir string)
		reason string // text after "The files in /workspace are not saved: "
		within func(t *testing.T, dir string)
	}{
		"together": {workdir.Options{Quota: 10 << 20}, func(t *testing.T, dir string) {
			hole(t, dir, "data/raw.bin", 8<<20)
			hole(t, dir, "data/a", 1<<20)
			hole(t, dir, "data/b", 3<<19)
			hole(t, dir, "data/c", 4)
		}, `together they have 10.6 MiB, and 10 MiB is the most. Remove what is not needed. The largest: "data/raw.bin" (8 MiB), ` +
			`"data/b" (1.5 MiB), "data/a" (1 MiB).`,
			func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "data/a"))) }},
		"one file": {workdir.Options{}, func(t *testing.T, dir string) {
			hole(t, dir, "sparse", 50<<30)
			hole(t, dir, "just too large", workdir.MaxFile+1)
		}, `a file has at most 64 MiB. Remove, or split into parts: "sparse" (51200 MiB), "just too large" (64.1 MiB).`,
			func(t *testing.T, dir string) {
				must(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<20))
				must(t, os.Remove(filepath.Join(dir, "just too large")))
			}},
		"names": {workdir.Options{Files: 300}, func(t *testing.T, dir string) {
			for n := range 299 { // 301 with the folder and the existing names
				write(t, dir, fmt.Sprint("d/", n), "")
			}
		}, `there are more than 300 files and folders, and that is the most. Remove what is not needed (du --inodes shows where they ` +
			`are), or put many small files into one archive.`,
			func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "d/0"))) }},
		"depth": {workdir.Options{}, func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", workdir.MaxDepth)+"e"), 0o755))
		}, `a path has at most 4096 bytes and 128 folders, and there is a longer one: ` +
			`"d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/…d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/e". Move or remove it.`,
			func(t *testing.T, dir string) {
				must(t, os.Remove(filepath.Join(dir, strings.Repeat("d/", workdir.MaxDepth)+"e")))
			}},
		"path": {workdir.Options{}, func(t *testing.T, dir string) {
			root, err := os.OpenRoot(dir)
			must(t, err)
			defer root.Close()
			must(t, root.MkdirAll(strings.Repeat(strings.Repeat("n", 250)+"/", 16)+strings.Repeat("n", 81), 0o755))
		}, `a path has at most 4096 bytes and 128 folders, and there is a longer one: "` + strings.Repeat("n",
			60) + `…` + strings.Repeat("n", 37) + `". Move or remove it.`,
			func(t *testing.T, dir string) {
				root, err := os.OpenRoot(dir)
				must(t, err)
				defer root.Close()
				long := strings.Repeat(strings.Repeat("n", 250)+"/", 16)
				must(t, root.Remove(long+strings.Repeat("n", 81)))
				must(t, root.Mkdir(long+strings.Repeat("n", 80), 0o755))
			}},
		"names together": {workdir.Options{}, func(t *testing.T, dir string) {
			root, err := os.OpenRoot(dir)
			must(t, err)
			defer root.Close()
			must(t, root.MkdirAll(long, 0o755))
			for n := range 2100 {
				must(t, root.Symlink("x", fmt.Sprint(long, "/", n)))
			}
		}, `the names of files and folders have more than 8 MiB together. Remove what is not needed, or give shorter names.`,
			func(t *testing.T, dir string) {
				root, err := os.OpenRoot(dir)
				must(t, err)
				defer root.Close()
				for n := range 100 {
					must(t, root.Remove(fmt.Sprint(long, "/", n)))
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.opt)
			f, dir := w.restore(t)
			write(t, dir, "before", "content")
			save(t, f)
			before := w.stored(t)
			write(t, dir, "before", "changed")
			c.fill(t, dir)
			_, err := f.Save(t.Context())
			refusal, ok := errors.AsType[*workdir.Refusal](err)
			if want := "The files in /workspace are not saved: " + c.reason; !ok || refusal.Reason != want {
				t.Fatalf("%v\nwant %s", err, want)
			}
			equal(t, w.stored(t), before)
			c.within(t, dir)
			save(t, f)
			root, err := os.OpenRoot(w.again(t))
			must(t, err)
			defer root.Close()
			if got, err := root.ReadFile("before"); err != nil || string(got) != "changed" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// again restores the saved folder into another directory.
func (w *world) again(t testing.TB) string {
	t.Helper()
	_, dir := w.restore(t)
	return dir
}

// A limit is the largest amount that fits.
func TestLimitsAreWhatFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{Quota: 1000, Files: 3})
	f, dir := w.restore(t)
	write(t, dir, "d/a", strings.Repeat("a", 400))
	write(t, dir, "d/b", strings.Repeat("b", 600))
	save(t, f)
	hole(t, dir, "d/b", 601)
	if _, err := f.Save(t.Context()); err == nil {
		t.Error("one byte too many is saved")
	}
	hole(t, dir, "d/b", 600)
	write(t, dir, "c", "")
	if _, err := f.Save(t.Context()); err == nil {
		t.Error("one name too many is saved")
	}
}

// TestTheQuotaOfAWorkspace checks that the folders of all sessions of a workspace count together.
func TestTheQuotaOfAWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	if _, err := w.pool.Exec(t.Context(), `UPDATE workspaces SET storage_quota = 3 << 20`); err != nil {
		t.Fatal(err)
	}
	other := &world{Store: w.Store, pool: w.pool, ws: w.ws, session: w.begin(t, w.ws)}
	foreign := w.tenant(t, "foreign")
	elsewhere := &world{Store: w.Store, pool: w.pool, ws: foreign, session: w.begin(t, foreign)}
	for _, world := range []*world{other, elsewhere} {
		f, dir := world.restore(t)
		hole(t, dir, "large", 2<<20)
		save(t, f)
	}
	f, dir := w.restore(t)
	hole(t, dir, "a", 1<<20)
	save(t, f)
	hole(t, dir, "b", 1<<20)
	_, err := f.Save(t.Context())
	if refusal, ok := errors.AsType[*workdir.Refusal](err); !ok || !strings.Contains(refusal.Reason,
		"The workspace has 3 MiB in files, folders and documents, and this folder has 1 MiB more. Its storage quota is 3 MiB. "+
			"Remove here what is not needed, or ask an administrator") {
		t.Errorf("%v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "a")))
	save(t, f)
}
