package workdir_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// opened returns the names of the files in a folder that were opened during fn.
func opened(t *testing.T, dir string, fn func()) (names []string) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	must(t, err)
	defer syscall.Close(fd)
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_, err = syscall.InotifyAddWatch(fd, path, syscall.IN_OPEN)
		}
		return err
	}))
	fn()
	buf := make([]byte, 1<<20)
	n, err := syscall.Read(fd, buf)
	if errors.Is(err, syscall.EAGAIN) {
		return nil
	}
	must(t, err)
	for buf = buf[:n]; len(buf) > 0; {
		mask, size := binary.NativeEndian.Uint32(buf[4:]), syscall.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(buf[12:]))
		if mask&syscall.IN_ISDIR == 0 {
			names = append(names, strings.TrimRight(string(buf[syscall.SizeofInotifyEvent:size]), "\x00"))
		}
		buf = buf[size:]
	}
	slices.Sort(names)
	return names
}

// Unchanged files are not read again: not by the second save, and not by the first one after a
// restore, whichever user the files were given to.
func TestNothingIsReadTwice(t *testing.T) {
	t.Parallel()
	given := 0
	w := newWorld(t, workdir.Options{Give: func(dir string) error {
		return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && os.Getuid() == 0 {
				given++
				err = os.Lchown(path, 61234, 61234)
			}
			return err
		})
	}})
	f, dir := w.restore(t)
	write(t, dir, "a", "content of a")
	write(t, dir, "sub/b", "content of b")
	write(t, dir, "large", strings.Repeat("content", 100_000))
	write(t, dir, "sub/copy", strings.Repeat("content", 100_000))
	saved := func(want ...string) {
		t.Helper()
		if got := opened(t, dir, func() { save(t, f) }); !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	saved("a", "b", "copy", "large")
	saved()
	sent := w.count(t, `SELECT count(*) FROM work_chunks`)
	if sent != 5 { // two small ones, and three of the large one
		t.Errorf("%d chunks", sent)
	}
	f, dir = w.restore(t)
	if os.Getuid() == 0 && given < 6 {
		t.Errorf("%d names changed their owner", given)
	}
	saved()

	// Only the time of the last change is reliable: a program can set all other attributes.
	at := filepath.Join(dir, "sub/b")
	was, err := os.Stat(at)
	must(t, err)
	must(t, os.WriteFile(at, []byte("CONTENT of b"), 0o644))
	must(t, os.Chtimes(at, time.Time{}, was.ModTime()))
	saved("b")
	must(t, os.Rename(filepath.Join(dir, "large"), filepath.Join(dir, "sub/moved")))
	must(t, os.Chmod(filepath.Join(dir, "a"), 0o755))
	saved("a", "moved")
	equal(t, w.stored(t), tree(t, dir))
	if n := w.count(t, `SELECT count(*) FROM work_chunks`); n != sent+1 {
		t.Errorf("%d chunks were sent for one of one chunk", n-sent)
	}
}

// When a save or a restore has ended, a later change of a file has another time.
func TestTwoChangesNeverLookLikeOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	settled := func() {
		t.Helper()
		now := time.Now()
		for _, name := range []string{"a", "b"} {
			info, err := os.Lstat(filepath.Join(dir, name))
			must(t, err)
			at := time.Unix(info.Sys().(*syscall.Stat_t).Ctim.Unix())
			if age := now.Sub(at); age < 10*time.Millisecond {
				t.Errorf("%s was changed only %s ago", name, age)
			}
		}
	}
	write(t, dir, "a", "content")
	write(t, dir, "b", "content")
	save(t, f)
	settled()
	f, dir = w.restore(t)
	settled()
	for n := range 20 {
		write(t, dir, "a", string(rune('a'+n))+"ontent")
		if done := save(t, f); done.Changed != 1 {
			t.Fatalf("change %d was not seen", n)
		}
	}
}
