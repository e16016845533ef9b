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

// StoreHead appends a head and syncs the file.
func (f file) StoreHead(_ context.Context, h chain.Head) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(string(f), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.Write(append(line, '\n')); err != nil {
		return err
	}
	return to.Sync()
}
