//go:build !linux

package workdir

import "io/fs"

// stamp detects whether a file may have changed since it was read. Commands are only contained on
// Linux; elsewhere the writer can set the time of the last change.
type stamp struct {
	size, modified, change int64
}

func stampOf(info fs.FileInfo) stamp {
	at := info.ModTime().UnixNano()
	return stamp{size: info.Size(), modified: at, change: at}
}

const openFlags = 0
