//go:build unix

package app_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestDevModeEndsWithItsPostgres stops the private PostgreSQL below a running serve --dev.
func TestDevModeEndsWithItsPostgres(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	dir := filepath.Join(t.TempDir(), ".parley")
	config, err := app.Load(app.Sources{Environ: []string{"PARLEY_LISTEN=127.0.0.1:0", "PARLEY_SANDBOX=off"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- app.Serve(ctx, app.Options{Config: config, DevDir: dir, Ready: func(string) { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		if errors.Is(err, devdb.ErrNoPostgres) {
			need.Missing(t, "%v", err)
		}
		t.Fatal(err)
	}
	private, err := devdb.Start(ctx, devdb.Options{Dir: filepath.Join(dir, "pg")})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := private.PID()
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGINT) // a fast and clean shutdown, like pg_ctl stop
	}
	if err != nil {
		t.Fatal(err)
	}
	err = wait.Receive(t, "the end", ended)
	var start *app.StartError
	if !errors.As(err, &start) || !strings.Contains(err.Error(), "The private PostgreSQL has ended") || ctx.Err() != nil {
		t.Errorf("serve --dev ended with %v", err)
	}
	if err := private.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := devdb.Remove(ctx, filepath.Join(dir, "pg")); err != nil {
		t.Error(err)
	}
}
