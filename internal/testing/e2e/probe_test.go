package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"
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
		"the connection breaks with the notification": func(p *faultproxy.Proxy, listener int) {
			p.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
				if c.Conn == listener && c.Direction == faultproxy.ToClient && bytes.Contains(c.Data, []byte("parley\x00")) {
					p.Refuse(true) // else a new listener may receive the turn's next notification
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

// TestLostTransaction loses a replica whose connection is open and silent within a transaction: the
// proxy keeps it open as a network does that lost the machine. PostgreSQL ends the transaction, and
// with it the lock of the session.
func TestLostTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.serve(t, nil)
	lost := w.newReplica(t, filepath.Join(t.TempDir(), "lost.log"), []string{w.dsn}, []string{"PARLEY_WORKERS=0"}, nil)
	wait.For(t, "the replica is ready", lost.ready)
	q := w.ask(t, other)
	silent := make(chan struct{}, 1)
	decides, conn := faultproxy.Executes("UPDATE approvals\nSET status = $1"), 0
	lost.proxies[0].OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		switch {
		case c.Direction == faultproxy.ToServer && conn == c.Conn:
			silent <- struct{}{}
			return faultproxy.FreezeConn
		case conn == 0 && decides(c):
			conn = c.Conn
		}
		return faultproxy.Forward
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _, _ = w.try(w.decision(t, &lost.server, q.DecideURL, "deny"))
	}()
	wait.Receive(t, "the connection is silent within the transaction", silent)
	lost.setUp(false)
	lost.send(syscall.SIGKILL)
	wait.Receive(t, "the end of the request", answered)
	began := time.Now()
	wait.For(t, "the other replica decides", func() bool {
		status, d := w.decide(t, other, q, "allow")
		return status == http.StatusOK && d.Data.Status == "allowed"
	})
	t.Logf("the other replica decided after %v", time.Since(began).Round(time.Millisecond))
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
	var frames []frame
	followed := make(chan error, 1)
	follow := func(f frame) {
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
	}
	go func() {
		var err error
		frames, err = w.follow(ctx, session, "", follow, &reader.server)
		followed <- err
	}()
	wait.For(t, "the turn has ended", func() bool {
		var done bool
		err := w.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM events WHERE session_id = $1 AND kind = 'done')`, session).Scan(&done)
		return err == nil && done
	})
	reader.proxies[0].Refuse(false)
	if err := wait.Receive(t, "the end of the stream", followed); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d frames, at most %v after their commit", len(frames), late.Round(time.Millisecond))
	if late > lateAtMost {
		t.Errorf("a reader received an event %v after its commit", late)
	}
}
