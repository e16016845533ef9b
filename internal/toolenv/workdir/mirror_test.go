package workdir_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// TestMirrorsAgree changes a mirror and applies its changes to the other copy.
func TestMirrorsAgree(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	write(t, here, "a/b/c", "1")
	write(t, here, "file", "same")
	write(t, here, "odd\xff\n", "2")
	must(t, os.Symlink("/etc/passwd", filepath.Join(here, "link")))
	pass := func(from, to *workdir.Mirror) int {
		t.Helper()
		changes, err := from.Changes(t.Context())
		must(t, err)
		var b bytes.Buffer
		must(t, changes.Pack(t.Context(), &b))
		n := b.Len()
		must(t, to.Unpack(t.Context(), &b))
		return n
	}
	mirror := workdir.NewMirror(there)
	pass(workdir.NewMirror(here), mirror)
	same(t, there, here)
	must(t, mirror.Remember(t.Context()))

	must(t, os.RemoveAll(filepath.Join(there, "a")))
	write(t, there, "a", "a file now")
	must(t, os.Remove(filepath.Join(there, "link")))
	write(t, there, "link/x", "a folder now")
	must(t, os.Chmod(filepath.Join(there, "odd\xff\n"), 0o755))
	must(t, os.Symlink("a", filepath.Join(there, "new")))
	pass(mirror, workdir.NewMirror(here))
	same(t, here, there)

	must(t, mirror.Remember(t.Context()))
	if n := pass(mirror, workdir.NewMirror(here)); n != 1024 {
		t.Errorf("without a change the archive has %d bytes", n)
	}
}

// TestHostileArchives unpacks archives of a hostile runner.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "folder")
	must(t, os.Mkdir(dir, 0o755))
	write(t, parent, "outside", "kept")
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, os.Symlink("/", filepath.Join(dir, "root")))
	write(t, dir, "full/x", "")
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }
	large := tar.Header{Name: "large", Typeflag: tar.TypeReg, Size: workdir.MaxFile + 1}
	for _, h := range []tar.Header{
		file("../outside"), file(parent + "/outside"), file("a/../../outside"), file("./x"), file(""), file("."), file("attachments/x"),
		file("up/outside"), file("root/tmp/x"), file("full"), large,
		file(strings.Repeat("x/", workdir.MaxDepth) + "x"), file(strings.Repeat("x", workdir.MaxPath+1)),
		{Name: "../outside", Typeflag: tar.TypeChar}, {Name: "up/outside", Typeflag: tar.TypeChar}, {Name: ".", Typeflag: tar.TypeChar},
		{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, {Name: "block", Typeflag: tar.TypeBlock},
		{Name: "pipe", Typeflag: tar.TypeFifo},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../outside"}, {Name: "link", Typeflag: tar.TypeSymlink,
			Linkname: strings.Repeat("x", workdir.MaxPath+1)},
		{Name: "up/new", Typeflag: tar.TypeDir}, {Name: "up/link", Typeflag: tar.TypeSymlink, Linkname: "x"},
		{Name: "attachments", Typeflag: tar.TypeSymlink, Linkname: "/"},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		must(t, w.WriteHeader(&h))
		_, _ = w.Write([]byte("x"))
		_ = w.Flush() // the large file is incomplete
		if err := workdir.NewMirror(dir).Unpack(t.Context(), &b); err == nil {
			t.Errorf("%.40q of type %q is unpacked", h.Name, h.Typeflag)
		}
	}
	for path, want := range map[string]string{parent: "folder outside", dir: "full root up"} {
		var names []string
		entries, err := os.ReadDir(path)
		must(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s contains %s", path, got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(parent, "outside")); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
}
