package anchor_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/chain/anchor"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestStuckFileHoldsNothing stores heads in a full pipe, whose write does not end, like that to a dead
// mount.
func TestStuckFileHoldsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := syscall.Open(path, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe)
	for page := make([]byte, 4096); err == nil; {
		_, err = syscall.Write(pipe, page)
	}
	to := parseOne(t, path, anchor.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	stored := make(chan error, 1)
	go func() { stored <- to.StoreHead(ctx, head(1)) }()
	if err := wait.Receive(t, "the end of the attempt", stored); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := to.StoreHead(t.Context(), head(2)); err == nil || !strings.Contains(err.Error(), "an earlier access to the file has not ended") {
		t.Errorf("while a write is stuck: %v", err)
	}
	wait.For(t, "the end of the write", func() bool {
		_, _ = syscall.Read(pipe, make([]byte, 1<<20))
		return !strings.Contains(to.StoreHead(t.Context(), head(3)).Error(), "an earlier write") // a pipe cannot be synced
	})
}
