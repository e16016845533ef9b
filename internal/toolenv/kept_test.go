package toolenv_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
)

// TestFolderIsTakenUpWhereItWasLeft continues a session on the same server, on another, and on the
// first again. A pipe, which is never saved, shows whether the folder is the original one.
func TestFolderIsTakenUpWhereItWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	here, there := w.replica(t), w.replica(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- here.Run(ctx) }()
	defer func() {
		stop()
		if err := wait.Receive(t, "the end", done); err != nil {
			t.Error(err)
		}
	}()

	run := here.Open(w.turn(t))
	bash(t, run, "mkfifo pipe; echo 1 > file")
	run.Close()
	run = here.Open(w.turn(t))
	if got := bash(t, run, "ls; cat file; echo 2 >> file"); got != "file\npipe\n1\n\n[not kept: \"pipe\": a pipe]\n" {
		t.Errorf("on the same server: %q", got)
	}
	run.Close()
	run = there.Open(w.turn(t))
	if got := bash(t, run, "ls; cat file; echo 3 >> file"); got != "file\n1\n2\n" {
		t.Errorf("on another: %q", got)
	}
	run.Close()
	run = here.Open(w.turn(t))
	if got := bash(t, run, "ls; cat file"); got != "file\n1\n2\n3\n" {
		t.Errorf("on the first again: %q", got)
	}

	// The folder of an interrupted command is not reused.
	cut, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	_, _, err := run.Bash(cut, tool.Call{}, "echo half > half; echo now; sleep 60", time.Minute, writer(func() { cancel(over) }))
	if !errors.Is(err, over) {
		t.Errorf("%v", err)
	}
	run.Close()
	run = here.Open(w.turn(t))
	defer run.Close()
	if got := bash(t, run, "ls"); got != "file\n" {
		t.Errorf("after an interrupted command: %q", got)
	}
}

// TestKeptFoldersGoWithTheirSession erases a session in another process.
func TestKeptFoldersGoWithTheirSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	r := w.replicaIn(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		stop()
		if err := wait.Receive(t, "the end", done); err != nil {
			t.Error(err)
		}
	}()
	run := r.Open(w.turn(t))
	if err := run.Write(t.Context(), tool.Call{}, "file", []byte("x")); err != nil {
		t.Fatal(err)
	}
	run.Close()
	if left, err := filepath.Glob(dir + "/*/*/file"); err != nil || len(left) != 1 {
		t.Fatalf("kept: %v, %v", left, err)
	}
	if err := os.RemoveAll(dir); err != nil { // like a cleaner of temporary directories
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run = r.Open(w.turn(t))
	if text, err := run.Text(t.Context(), "file"); err != nil || text != "x" {
		t.Errorf("after a cleaning: %q, %v", text, err)
	}
	run.Close()
	if _, err := w.pool.Exec(t.Context(), `UPDATE sessions SET erased_at = now()`); err != nil {
		t.Fatal(err)
	}
	tick, deadline := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for {
		left, _ := filepath.Glob(dir + "/*/*")
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%v still exists", left)
		}
	}
}

// TestNoFolderOutlivesItsProcess runs a server without a sandbox after one that was killed, and ends
// it.
func TestNoFolderOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	dead := filepath.Join(dir, "parley-folders-1")
	if err := os.MkdirAll(filepath.Join(dead, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := w.replicaIn(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	wait.For(t, "the folders of the killed server are removed", func() bool {
		_, err := os.Lstat(dead)
		return errors.Is(err, fs.ErrNotExist)
	})
	run := r.Open(w.turn(t))
	if err := run.Write(t.Context(), tool.Call{}, "file", []byte("x")); err != nil {
		t.Fatal(err)
	}
	run.Close()
	stop()
	if err := wait.Receive(t, "the end", done); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left after the end: %v, %v", left, err)
	}
}

// writer calls a function on every write.
type writer func()

func (f writer) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
