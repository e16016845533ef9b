package toolenv_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// signal reports the first bytes of a command's output.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestWorkspaceLeavesPlacesForCommands lets one workspace start more long commands than there are
// places, and then another workspace a short one.
func TestWorkspaceLeavesPlacesForCommands(t *testing.T) {
	t.Parallel()
	const places, started = 4, 6
	w := newWorld(t).contained(t)
	r := toolenv.New(toolenv.Config{Pool: w.pool, Guard: w.guard, Vault: w.vault, Files: w.files, Sandbox: w.box,
		Folders: workdir.New(w.pool, workdir.Options{Give: w.box.Give}), Dir: t.TempDir(), Commands: places})

	ctx, cancel := context.WithCancel(t.Context())
	running := make(signal, started)
	var long sync.WaitGroup
	t.Cleanup(long.Wait)
	t.Cleanup(cancel)
	for range started {
		run := r.Open(w.in(t, w.workspace))
		long.Go(func() {
			defer run.Close()
			_, _, _ = run.Bash(ctx, tool.Call{ID: "c"}, "echo in; sleep 300", time.Hour, running) // ends with ctx
		})
	}
	for range places - 1 {
		select {
		case <-running:
		case <-time.After(time.Minute):
			t.Fatal("the long commands do not start")
		}
	}

	other, err := workspace.New(w.pool).Create(t.Context(), "other", "", "")
	if err != nil {
		t.Fatal(err)
	}
	run := r.Open(w.in(t, other.ID))
	defer run.Close()
	short, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	began := time.Now()
	var out bytes.Buffer
	if _, _, err := run.Bash(short, tool.Call{ID: "c"}, "echo hi", 20*time.Second, &out); err != nil || out.String() != "hi\n" {
		t.Errorf("the other workspace's command printed %q after %s: %v", out.String(), time.Since(began), err)
	}
	t.Logf("the other workspace waited %s", time.Since(began))
}

// in creates a turn in a new session of a workspace.
func (w *world) in(t *testing.T, ws uuid.UUID) toolenv.Turn {
	t.Helper()
	of := *w
	of.workspace, of.session = ws, uuid.Must(uuid.NewV7())
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, of.session, of.workspace); err != nil {
		t.Fatal(err)
	}
	return of.turn(t)
}
