package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxDepth is the maximum depth of a command's folders. Saved folders have the same limit.
const maxDepth = 128

var errDeep = errors.New("the folder is too deep")

// openDir opens a directory itself, never the target of a link.
const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// walkFolder calls see for everything in a folder, each with its directory, until see fails. It
// descends by descriptors, so that its time is proportional to the contents and no link misleads
// it, and ends with errDeep below maxDepth. Names that are removed meanwhile are skipped.
func walkFolder(folder string, see func(dir int, name string, stat *unix.Stat_t) error) error {
	fd, err := unix.Open(folder, openDir, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: folder, Err: err}
	}
	return walkDir(fd, 1, see)
}

// walkDir closes the directory.
func walkDir(dir, depth int, see func(dir int, name string, stat *unix.Stat_t) error) error {
	return eachName(dir, func(name string) error {
		if depth > maxDepth {
			return errDeep
		}
		var stat unix.Stat_t
		if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return ignoreGone(err)
		}
		if err := see(dir, name, &stat); err != nil {
			return err
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			return nil
		}
		below, err := unix.Openat(dir, name, openDir, 0)
		if err != nil {
			return ignoreGone(err)
		}
		return walkDir(below, depth+1, see)
	})
}

// eachName calls see for each name in a directory, and closes the directory.
func eachName(dir int, see func(name string) error) error {
	f := os.NewFile(uintptr(dir), "a directory")
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if err := see(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return ignoreGone(err)
		}
	}
}

// ignoreGone returns nil for an error of a name that was removed or replaced meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}
