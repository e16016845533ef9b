package app_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestStartWithAHalfOpenConnection starts a service once for each chunk of data that a start
// exchanges with PostgreSQL. At this chunk the chunk's connection goes silent for good; PostgreSQL
// does not notice it either, and keeps the locks of the connection.
func TestStartWithAHalfOpenConnection(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	chunks := startSilencing(t, 0)
	var starts errgroup.Group // not t.Parallel: the starts wait most of the time
	starts.SetLimit(16)
	for k := 1; k <= chunks; k++ {
		starts.Go(func() error {
			t.Run(fmt.Sprint(k), func(t *testing.T) { startSilencing(t, k) })
			return nil
		})
	}
	_ = wait.Result(t, "the starts", starts.Wait)
}

// startSilencing starts a service, silences the connection of the k-th chunk, and returns how many
// chunks there were before the parts of the service began to run.
func startSilencing(t *testing.T, k int) (chunks int) {
	t.Helper()
	b := newBridge(t, dbtest.DSN(t))
	var seen atomic.Int64
	running := false
	b.proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		running = running || bytes.Contains(c.Data, []byte("parley listener"))
		if !running && seen.Add(1) == int64(k) {
			t.Logf("connection %d is silent from its byte %d on, direction %d: %q", c.Conn, c.Offset, c.Direction, c.Data[:min(200, len(c.Data))])
			return faultproxy.FreezeConn
		}
		return faultproxy.Forward
	})
	config, err := app.Load(app.Sources{Environ: []string{"PARLEY_DURABILITY=off", "PARLEY_VAULT_KEY=" + vaultKey,
		"DATABASE_URL=" + b.through, "PARLEY_LISTEN=127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ready, ended := make(chan struct{}), make(chan error, 1)
	opt := app.Options{Config: config, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Ready: func(string) { close(ready) }}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- app.Serve(ctx, opt) }()
	limit, cancel := context.WithTimeout(t.Context(), linkLimit)
	defer cancel()
	select {
	case <-ready:
		t.Logf("ready after %v", time.Since(began))
	case <-limit.Done():
		t.Errorf("the service is not ready %v after its start", linkLimit)
	case err := <-ended:
		t.Fatalf("the service ended: %v", err)
	}
	chunks = int(seen.Load())
	stop()
	b.proxy.OnChunk(nil)
	b.proxy.Cut()
	if err := wait.Receive(t, "the end", ended); err != nil && limit.Err() == nil {
		t.Logf("stop: %v", err)
	}
	return chunks
}
