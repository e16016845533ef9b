package workdir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Links are saved as links and never followed, whatever their target.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	outside := t.TempDir()
	write(t, outside, "secret", "of the host")
	must(t, os.Mkdir(filepath.Join(outside, "empty"), 0o700))
	f, dir := w.restore(t)
	for name, target := range map[string]string{
		"file": outside + "/secret", "folder": outside, "up": "..", "self": ".", "loop": "loop", "proc": "/proc/self/root", "zero": "/dev/zero",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(t, os.Symlink("../sub", filepath.Join(dir, "sub", "again")))
	done := save(t, f)
	if done.Files != 9 || done.Bytes != 0 {
		t.Errorf("%+v", done)
	}
	_, there := w.restore(t)
	same(t, there, dir)
	if info, err := os.Stat(filepath.Join(outside, "empty")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a file outside has changed: %v, %v", info, err)
	}

	// A folder is replaced by a link between two saves.
	g, at := w.restore(t)
	must(t, os.Remove(filepath.Join(at, "sub", "again")))
	write(t, at, "sub/secret", "own")
	save(t, g)
	must(t, os.RemoveAll(filepath.Join(at, "sub")))
	must(t, os.Symlink(outside, filepath.Join(at, "sub")))
	save(t, g)
	if strings.Contains(w.stored(t), "of the host") {
		t.Error("a file of the host was read")
	}
	_, there = w.restore(t)
	same(t, there, at)
}

// A name that is not a file, folder or link is skipped and reported, and the save does not wait for
// it.
func TestPipesSocketsAndDevicesAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	must(t, syscall.Mknod(filepath.Join(dir, "socket"), syscall.S_IFSOCK|0o644, 0))
	want := []string{`"pipe": a pipe`, `"socket": a socket`}
	if err := syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o666, 1<<8|5); err == nil { // /dev/zero
		want = append(want, `"device": a device`)
	}
	write(t, dir, "file", "content")
	done, err := f.Save(t.Context())
	must(t, err)
	slices.Sort(want)
	slices.Sort(done.Skipped)
	if !slices.Equal(done.Skipped, want) || done.Files != 1 {
		t.Errorf("%+v", done)
	}
	for n := range 30 {
		must(t, syscall.Mkfifo(filepath.Join(dir, fmt.Sprint("more", n)), 0o644))
	}
	if done, err = f.Save(t.Context()); err != nil || len(done.Skipped) != 21 || !strings.HasPrefix(done.Skipped[20], "and ") {
		t.Errorf("%q, %v", done.Skipped, err)
	}
	if list, err := w.List(t.Context(), w.ws, w.session); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// A pipe replaces a file that was saved.
func TestAFileThatBecomesAPipeIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "content")
	save(t, f)
	must(t, os.Remove(filepath.Join(dir, "a")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "a"), 0o644))
	if done, err := f.Save(t.Context()); err != nil || len(done.Skipped) != 1 || done.Files != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	equal(t, w.stored(t), "")
}

func TestHardLinksAreFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "content")
	must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	if done := save(t, f); done.Files != 2 || done.Bytes != 14 {
		t.Errorf("%+v", done)
	}
	_, there := w.restore(t)
	write(t, there, "a", "other")
	if got, err := os.ReadFile(filepath.Join(there, "b")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
}

// as runs fn in a thread that accesses files as another user.
func as(t *testing.T, uid uintptr, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends here
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, uid, 0, 0); errno != 0 {
			t.Error(errno)
			return
		}
		fn()
	}()
	wait.Receive(t, "the end", done)
}

// A user's files are saved although that user has removed their own rights to them; files of
// another user are skipped.
func TestFilesWithoutRights(t *testing.T) {
	t.Parallel()
	need.Root(t)
	w := newWorld(t, workdir.Options{})
	const uid = 61234
	base, err := os.MkdirTemp("", "workdir") // t.TempDir is accessible to root only
	must(t, err)
	defer os.RemoveAll(base)
	must(t, os.Chmod(base, 0o755))
	dir, there := filepath.Join(base, "a"), filepath.Join(base, "b")
	for _, d := range []string{dir, there} {
		must(t, os.Mkdir(d, 0o755))
		must(t, os.Chown(d, uid, uid))
	}
	f, err := w.Restore(t.Context(), w.claim(), dir)
	must(t, err)
	write(t, dir, "closed/inside/file", "content")
	write(t, dir, "file", "content")
	write(t, dir, "run", "content")
	must(t, filepath.Walk(dir, func(path string, _ os.FileInfo, _ error) error { return os.Chown(path, uid, uid) }))
	write(t, dir, "foreign", "of root")
	must(t, os.Mkdir(filepath.Join(dir, "foreign folder"), 0o700))
	write(t, dir, "foreign folder/file", "of root")
	for _, path := range []string{"closed/inside", "closed", "file", "foreign", "."} {
		must(t, os.Chmod(filepath.Join(dir, path), 0))
	}
	must(t, os.Chmod(filepath.Join(dir, "run"), 0o100))
	as(t, uid, func() {
		done, err := f.Save(t.Context())
		slices.Sort(done.Skipped)
		if err != nil || !slices.Equal(done.Skipped, []string{`"foreign folder": not readable`, `"foreign": not readable`}) {
			t.Errorf("%+v, %v", done, err)
		}
		if done, err := f.Save(t.Context()); err != nil || done.Changed != 0 {
			t.Errorf("again: %+v, %v", done, err)
		}
	})
	_, err = w.Restore(t.Context(), w.claim(), there)
	must(t, err)
	want := t.TempDir()
	write(t, want, "closed/inside/file", "content")
	write(t, want, "file", "content")
	write(t, want, "run", "content")
	must(t, os.Chmod(filepath.Join(want, "run"), 0o755))
	must(t, os.Mkdir(filepath.Join(want, "foreign folder"), 0o755))
	same(t, there, want)
}

// Files that users sent are shown beside the agent's own files, and are not part of the folder.
func TestAttachmentsAreNoPartOfTheFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "attachments/report.pdf", "sent")
	write(t, dir, "own/attachments/file", "own")
	told := []string{`"attachments": the name is for what users send`}
	if done, err := f.Save(t.Context()); err != nil || done.Files != 3 || !slices.Equal(done.Skipped, told) {
		t.Errorf("%+v, %v", done, err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "attachments")))
	must(t, os.Symlink("/etc", filepath.Join(dir, "attachments")))
	if done, err := f.Save(t.Context()); err != nil || done.Changed != 0 || !slices.Equal(done.Skipped, told) {
		t.Errorf("%+v, %v", done, err)
	}
	must(t, os.Remove(filepath.Join(dir, "attachments")))
	_, there := w.restore(t)
	same(t, there, dir)
}

// Files are restored with their modes, whatever the umask of this process is. Not parallel: the
// umask applies to the whole process.
func TestRightsComeBack(t *testing.T) {
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "folder/file", "content")
	write(t, dir, "folder/run", strings.Repeat("content", 100_000))
	must(t, os.Chmod(filepath.Join(dir, "folder/run"), 0o755))
	save(t, f)
	there := t.TempDir()
	old := syscall.Umask(0o077)
	_, err := w.Restore(t.Context(), w.claim(), there)
	syscall.Umask(old)
	must(t, err)
	same(t, there, dir)
}
