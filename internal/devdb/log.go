package devdb

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
)

const maxLog = 16 << 20

// openLog opens the log for appending; a log that has grown large is renamed first.
func openLog(path string) (*os.File, error) {
	if logSize(path) > maxLog {
		if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

func logSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

var fatalLine = regexp.MustCompile(`(?m)(?:FATAL|PANIC): +(.+)$`)

// endReason returns what PostgreSQL logged before it ended, or its exit status.
func endReason(path string, from int64, ended error) string {
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		text, _ := io.ReadAll(io.NewSectionReader(f, from, 1<<20))
		if found := fatalLine.FindAllSubmatch(text, -1); len(found) > 0 {
			return string(found[0][1])
		}
	}
	if ended == nil {
		return "it ended"
	}
	return ended.Error()
}
