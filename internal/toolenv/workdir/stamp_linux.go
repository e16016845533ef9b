package workdir

import (
	"io/fs"
	"syscall"
)

// stamp detects whether a file may have changed since it was read. Programs can set every other
// time of a file, but not the time of its last change.
type stamp struct {
	dev, inode             uint64
	size, modified, change int64 // times in nanoseconds
}

func stampOf(info fs.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{dev: uint64(st.Dev), inode: st.Ino, size: st.Size, modified: st.Mtim.Nano(), change: st.Ctim.Nano()}
}

// openFlags keep the opening of a name from waiting for a pipe's other end, and from following a
// name that has become a link.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
