package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep the folders of a command may be. What is saved of them is
// bounded in the same way.
const maxDepth = 128

var errDeep = errors.New("the folder is too deep")

// openDir is a directory itself, never what a link to one names.
const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// walkFolder calls see for all that is in a folder, each with the directory that it is in,
// until see fails. It goes down by descriptors, so that it takes a time proportional to
// what is there and no link leads it astray, and ends with errDeep below maxDepth. What
// goes meanwhile is left out.
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

// eachName calls see for each name in a directory, and closes that.
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

// ignoreGone is nil for what was removed or replaced meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}
