package anchor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-server/parley/internal/store/chain"
)

// fileGrace is how long an access to the file may continue after the end of its context. A stopping
// server waits longer for the chain.
const fileGrace = time.Second

// file has one line of JSON for each head.
type file struct {
	path string
	busy chan struct{} // has an element during an access
}

func newFile(path string) *file { return &file{path, make(chan struct{}, 1)} }

func (f *file) String() string { return f.path }

// StoreHead appends a head.
func (f *file) StoreHead(ctx context.Context, h chain.Head) error {
	return f.access(ctx, func() error { return f.appendHead(h) })
}

// Check opens the file as StoreHead does. A file that does not exist is not created: its directory must
// take another one.
func (f *file) Check(ctx context.Context) (found string, err error) {
	err = f.access(ctx, func() (err error) {
		found, err = f.probe()
		return err
	})
	if err != nil {
		return "", err // the access may continue
	}
	return found, nil
}

// access calls do. The kernel can keep an access for ever, as on a dead NFS mount, and nothing ends it:
// then access leaves it, and rejects others until it has ended.
func (f *file) access(ctx context.Context, do func() error) error {
	select {
	case f.busy <- struct{}{}:
	default:
		return errors.New("an earlier access to the file has not ended")
	}
	done := make(chan error, 1)
	go func() {
		err := do()
		<-f.busy
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
	case <-time.After(fileGrace):
		return fmt.Errorf("the access to the file does not end: %w", context.Cause(ctx))
	}
}

func (f *file) probe() (found string, err error) {
	to, err := os.OpenFile(f.path, os.O_APPEND|os.O_RDWR, 0)
	if err == nil {
		return "can be written", to.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	dir := filepath.Dir(f.path)
	probe, err := os.CreateTemp(dir, ".parley-doctor-")
	if at, ok := errors.AsType[*fs.PathError](err); ok { // without the name of the probe
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("the directory %s does not exist", dir)
		}
		return "", fmt.Errorf("no file can be created in %s: %w", dir, at.Err)
	}
	if err != nil {
		return "", err
	}
	probe.Close()
	return "can be created", os.Remove(probe.Name())
}

// appendHead appends a head and syncs the file. A line that a crash has cut off stays a line of its
// own.
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
