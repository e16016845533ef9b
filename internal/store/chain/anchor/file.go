package anchor

import (
	"context"
	"encoding/json"
	"os"

	"github.com/parley-server/parley/internal/store/chain"
)

// file is the path of a file with one line of JSON for each head.
type file string

func (f file) String() string { return string(f) }

// StoreHead appends a head and syncs the file. A line that a crash has cut off stays a line of its own.
func (f file) StoreHead(_ context.Context, h chain.Head) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(string(f), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
	if err != nil {
		return err
	}
	defer to.Close()
	line = append(line, '\n')
	last := []byte{'\n'}
	if info, err := to.Stat(); err == nil && info.Size() > 0 {
		_, _ = to.ReadAt(last, info.Size()-1)
	}
	if last[0] != '\n' {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := to.Write(line); err != nil {
		return err
	}
	return to.Sync()
}
