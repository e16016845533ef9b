//go:build unix

package app

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openNonblock keeps a FIFO in place of a file from blocking its reader.
const openNonblock = syscall.O_NONBLOCK

// notOwn returns the reason why another user may have written an open file, or "".
func notOwn(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return "is not a regular file"
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to the user id %d", st.Uid)
	case mode.Perm()&0o077 != 0:
		return fmt.Sprintf("is open to other users (mode %04o)", mode.Perm())
	}
	return ""
}
