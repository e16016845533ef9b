package workdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	// maxNames limits the total length of a folder's paths, which are all in memory at once.
	maxNames = 8 << 20
	// maxSkipped is how many unsaved names are listed.
	maxSkipped = 20
)

// walk lists the names in a folder, without any content. It ends early if a limit is exceeded.
type walk struct {
	*tree
	files int // maximum number of names

	found    map[string]known // files have no hash yet
	bytes    int64            // total size of the files by their metadata
	largest  []sized
	tooLarge []sized
	names    int
	pathLen  int
	skipped  []string
	missed   int // number of names not in skipped, which is full
	queue    []string
}

// openRoot opens a folder, even if its owner has removed their own rights.
func openRoot(dir string) (*os.Root, error) {
	if info, err := os.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(dir, info.Mode().Perm()|0o700) // otherwise opening it fails with the reason
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	return root, nil
}

// walkFolder walks the whole folder, a directory before those in it.
func (w *walk) walkFolder(ctx context.Context) error {
	w.found = make(map[string]known)
	w.queue = []string{"."}
	for len(w.queue) > 0 {
		dir := w.queue[len(w.queue)-1] // the last one, so that the contents of the open directory come first
		w.queue = w.queue[:len(w.queue)-1]
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.lookInto(dir); err != nil {
			return err
		}
	}
	return nil
}

// lookInto lists the names in a directory.
func (w *walk) lookInto(path string) error {
	dir, err := w.openDir(path)
	if err != nil {
		return w.skipUnreadable(path, err)
	}
	f, err := dir.Open(".")
	if err != nil {
		return w.skipUnreadable(path, err)
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if err := w.visitName(dir, path, name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return w.skipUnreadable(path, err)
		}
	}
}

// skipUnreadable skips files of other users, and returns every other error: a name must not be lost
// because a disk fails.
func (w *walk) skipUnreadable(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("look into the folder: %w", err)
	}
	w.addSkipped(path, "not readable")
	return nil
}

// visitName visits one name in a directory with the path in.
func (w *walk) visitName(dir *os.Root, in, name string) error {
	path := name
	if in != "." {
		path = in + "/" + name
	} else if name == Attachments {
		if !w.isEmptyFolder(name) {
			w.addSkipped(path, "the name is for what users send")
		}
		return nil
	}
	if w.names++; w.names > w.files {
		return tooMany(w.files)
	}
	if w.pathLen += len(path); w.pathLen > maxNames {
		return newRefusal("the names of files and folders have more than %s together. Remove what is not needed, or give shorter names.",
			describeSize(maxNames))
	}
	if len(path) > MaxPath || strings.Count(path, "/") >= MaxDepth {
		return tooFar(path)
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return w.skipUnreadable(path, err)
	}
	k := known{stamp: stampOf(info)}
	switch mode := info.Mode(); mode.Type() {
	case 0:
		permitReading(dir, name, mode, 0o400)
		k.kind, k.size, k.executable = File, info.Size(), mode.Perm()&0o100 != 0
		w.countSize(sized{path, info.Size()})
	case fs.ModeDir:
		permitReading(dir, name, mode, 0o700)
		k.kind = Dir
		w.queue = append(w.queue, path)
	case fs.ModeSymlink:
		if k.target, err = dir.Readlink(name); err != nil {
			return w.skipUnreadable(path, err)
		}
		k.kind = Symlink
		w.pathLen += len(k.target)
	default:
		w.addSkipped(path, typeOf(mode))
		return nil
	}
	w.found[path] = k
	return nil
}

// isEmptyFolder reports whether a name is an empty folder.
func (w *walk) isEmptyFolder(name string) bool {
	f, err := w.top.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	return len(names) == 0 && errors.Is(err, io.EOF)
}

// permitReading gives the owner the rights for reading. If this process is not the owner, opening
// fails later.
func permitReading(dir *os.Root, name string, mode fs.FileMode, need fs.FileMode) {
	if mode.Perm()&need != need {
		_ = dir.Chmod(name, mode.Perm()|need)
	}
}

// countSize counts a file's size from its metadata: reading it might never end.
func (w *walk) countSize(f sized) {
	w.bytes += f.size
	w.largest = keepLargest(w.largest, f)
	if f.size > MaxFile {
		w.tooLarge = keepLargest(w.tooLarge, f)
	}
}

// checkSizes rejects a folder with a file that is too large, or with more bytes than quota.
func (w *walk) checkSizes(quota int64) error {
	switch {
	case len(w.tooLarge) > 0:
		return tooLarge(w.tooLarge)
	case w.bytes > quota:
		return tooMuch(w.bytes, quota, w.largest)
	}
	return nil
}

func (w *walk) addSkipped(path, why string) {
	if len(w.skipped) >= maxSkipped {
		w.missed++
		return
	}
	w.skipped = append(w.skipped, quotePath(path)+": "+why)
}

// listSkipped lists the unsaved names.
func (w *walk) listSkipped() []string {
	if w.missed > 0 {
		return append(w.skipped, fmt.Sprintf("and %d more", w.missed))
	}
	return w.skipped
}

// typeOf names the type of a file that is not a regular file, folder or link.
func typeOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// openFile opens a file that visitName has found. It never opens the target of a link, or a file
// that can block a reader.
func (w *walk) openFile(path string) (*os.File, fs.FileInfo, error) {
	dir, name, err := w.findParent(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file any more")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
