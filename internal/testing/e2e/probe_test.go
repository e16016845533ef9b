package e2e_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// lateAtMost is how much later than its commit an event may reach a reader whose replica has lost its
// notifications.
const lateAtMost = 2500 * time.Millisecond

// TestProbes breaks one connection, waits, and then lets one event happen in silence. TestChaos
// cannot find a lost wake-up if other events follow at once.
func TestProbes(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	for name, fault := range map[string]func(p *faultproxy.Proxy, listener int){
		"nothing": func(*faultproxy.Proxy, int) {},
		"the connection breaks with the notification": func(p *faultproxy.Proxy, listener int) {
			p.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
				if c.Conn == listener && c.Direction == faultproxy.ToClient && bytes.Contains(c.Data, []byte("parley\x00")) {
					return faultproxy.ResetAfter(0)
				}
				return faultproxy.Forward
			})
		},
		"the connection is half-open": func(p *faultproxy.Proxy, listener int) {
			p.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
				if c.Conn == listener {
					return faultproxy.FreezeConn
				}
				return faultproxy.Forward
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe(t, fault)
		})
	}
}

// probe reads a turn at a replica whose listening connection breaks before the turn's only event.
func probe(t *testing.T, fault func(p *faultproxy.Proxy, listener int)) {
	w := newWorld(t)
	worker := w.serve(t, nil)
	dir := t.TempDir()
	reader := w.newReplica(t, filepath.Join(dir, "reader.log"), []string{w.dsn}, []string{"PARLEY_WORKERS=0"}, nil)
	listeners := make(chan int, 100)
	reader.proxies[0].OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if c.Direction == faultproxy.ToServer && bytes.Contains(c.Data, []byte("LISTEN parley\x00")) {
			listeners <- c.Conn
		}
		return faultproxy.Forward
	})
	wait.For(t, "the reader's replica is ready", reader.ready)
	var listener int
	select {
	case listener = <-listeners:
	case <-time.After(wait.Limit):
		t.Fatal("the replica does not listen")
	}
	session, _ := w.start(t, worker, "@say one\n@wait 6s\n@say two")
	var late time.Duration
	began := false
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit)
	defer cancel()
	frames, err := w.follow(ctx, session, "", func(f frame) {
		now := time.Now()
		if !began {
			began = true
			fault(reader.proxies[0], listener)
			return
		}
		seq, _ := strconv.ParseInt(f.ID, 10, 64)
		var at time.Time
		if err := w.pool.QueryRow(t.Context(), `SELECT at FROM events WHERE session_id = $1 AND seq = $2`, session, seq).Scan(&at); err != nil {
			t.Error(err)
		}
		late = max(late, now.Sub(at))
	}, &reader.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d frames, at most %v after their commit", len(frames), late.Round(time.Millisecond))
	if late > lateAtMost {
		t.Errorf("a reader received an event %v after its commit", late)
	}
}
