package anchor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/parley-server/parley/internal/store/chain"
)

// writeGrace is how long a write may continue after the end of its context. A stopping server waits
// longer for the chain.
const writeGrace = time.Second

// file has one line of JSON for each head.
type file struct {
	path    string
	writing chan struct{} // has an element while a write continues
}

func newFile(path string) *file { return &file{path, make(chan struct{}, 1)} }

func (f *file) String() string { return f.path }

// StoreHead appends a head. The kernel can keep a write for ever, as on a dead NFS mount, and nothing
// ends it: then StoreHead leaves it, and rejects others until it has ended.
func (f *file) StoreHead(ctx context.Context, h chain.Head) error {
	select {
	case f.writing <- struct{}{}:
	default:
		return errors.New("an earlier write has not ended")
	}
	done := make(chan error, 1)
	go func() {
		err := f.appendHead(h)
		<-f.writing
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(writeGrace):
		return fmt.Errorf("the write does not end: %w", context.Cause(ctx))
	}
}

// appendHead appends a head and syncs the file. A line that a crash has cut off stays a line of its own.
func (f *file) appendHead(h chain.Head) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
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
