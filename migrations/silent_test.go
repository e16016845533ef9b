package migrations_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/migrations"
)

// TestSilentConnectionEndsAMigration silences one connection at some chunks of data of a whole
// migration. Up returns a transient error, PostgreSQL frees the locks of the connection, and the
// next Up completes the schema.
func TestSilentConnectionEndsAMigration(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	chunks := upSilencing(t, 0)
	var runs errgroup.Group // not t.Parallel: the runs mostly wait
	runs.SetLimit(8)
	const samples = 16
	for i := range samples {
		k := 1 + i*chunks/samples + rand.N(chunks/samples)
		runs.Go(func() error {
			t.Run(fmt.Sprint(k), func(t *testing.T) { upSilencing(t, k) })
			return nil
		})
	}
	_ = wait.Result(t, "the runs", runs.Wait)
}

// upSilencing migrates an empty database, silences the connection of the k-th chunk, and returns
// the number of chunks.
func upSilencing(t *testing.T, k int) (chunks int) {
	t.Helper()
	direct := dbtest.Empty(t)
	proxy, dsn := dbtest.Proxy(t, direct)
	var seen atomic.Int64
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if seen.Add(1) == int64(k) {
			t.Logf("connection %d is silent from its byte %d on, direction %d: %.200q", c.Conn, c.Offset, c.Direction, c.Data)
			return faultproxy.FreezeConn
		}
		return faultproxy.Forward
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := migrations.Up(ctx, dsn, migrations.Options{})
		if err == nil {
			break
		}
		if ctx.Err() != nil || !pgerr.IsTransient(err) {
			t.Fatalf("the migration failed permanently: %v", err)
		}
		t.Logf("again, after: %v", err)
	}
	steps, err := migrations.Status(ctx, direct)
	if err != nil || len(migrations.Pending(steps)) > 0 {
		t.Errorf("pending: %v, %v", migrations.Pending(steps), err)
	}
	return int(seen.Load())
}
