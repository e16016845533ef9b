package e2e_test

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
)

// replica is a server process with a fault proxy of its own before each PostgreSQL. It is restarted
// whenever it ends, as by a service manager, unless it must stay down.
type replica struct {
	server
	addr    string
	proxies []*faultproxy.Proxy // in the order of chaosDatabase.servers
	env     []string
	once    []string // environment of the first process alone
	log     *os.File

	mu     sync.Mutex
	up     bool // false: it must stay down
	old    bool // its next process is one of an older release
	closed bool
	change chan struct{} // up or closed has changed
	done   chan struct{} // the supervisor has ended
}

// newReplica starts a replica on a database whose address on each server is given. The environment
// once is that of its first process alone.
func (w *world) newReplica(t *testing.T, logPath string, servers, env, once []string) *replica {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	r := &replica{addr: addr, once: once, up: true, change: make(chan struct{}, 1), done: make(chan struct{})}
	r.url = "http://" + addr
	var dsns []string
	for _, server := range servers {
		proxy, dsn := dbtest.Proxy(t, server)
		r.proxies, dsns = append(r.proxies, proxy), append(dsns, dsn)
	}
	dsn := dsns[0]
	if len(dsns) > 1 {
		dsn = dbtest.PrimaryOf(dsns...)
	}
	r.env = append(environ(), "DATABASE_URL="+dsn, "PARLEY_DURABILITY=off", "PARLEY_VAULT_KEY="+vaultKey)
	r.env = append(r.env, env...)
	if r.log, err = os.Create(logPath); err != nil {
		t.Fatal(err)
	}
	go r.supervise()
	t.Cleanup(r.close)
	return r
}

// supervise runs the process until the replica is closed.
func (r *replica) supervise() {
	defer close(r.done)
	defer r.log.Close()
	for {
		r.mu.Lock()
		up, closed := r.up, r.closed
		var err error
		if up && !closed {
			r.cmd, r.once = r.command(), nil
			err = r.cmd.Start()
		}
		cmd := r.cmd
		r.mu.Unlock()
		switch {
		case closed:
			return
		case !up:
			<-r.change
			continue
		case err != nil:
			fmt.Fprintln(r.log, "chaos: start:", err)
			return
		}
		err = cmd.Wait()
		fmt.Fprintln(r.log, "chaos: the process ended:", err)
		select {
		case <-r.change:
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// send sends a signal to the process, if it runs.
func (r *replica) send(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(sig)
	}
}

// setUp sets whether the process runs again after its next end.
func (r *replica) setUp(up bool) {
	r.mu.Lock()
	r.up = up
	r.mu.Unlock()
	select {
	case r.change <- struct{}{}:
	default:
	}
}

func (r *replica) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.setUp(false)
	r.send(syscall.SIGCONT)
	r.send(syscall.SIGKILL)
	<-r.done
}

// eachProxy calls f for each of the replica's proxies.
func (r *replica) eachProxy(f func(*faultproxy.Proxy)) {
	for _, p := range r.proxies {
		f(p)
	}
}
