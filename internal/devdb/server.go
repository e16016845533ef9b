//go:build unix

package devdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Server is this process's share in a running PostgreSQL.
type Server struct {
	Version string // "15.18"
	Dir     string // the actual data directory; can differ from Options.Dir, see Start
	Joined  bool   // it was already running

	place place
	users *flock
	peers *flock
	guard *exec.Cmd // if this process started it
	task  task
	at    pidfile
}

// Start joins the server on opts.Dir, starts it, or creates it first. PostgreSQL refuses to run as
// root. Then it runs as the user postgres or else nobody, and if that user cannot reach opts.Dir
// the data goes below /var/tmp, which Progress and Server.Dir report.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Dir == "" {
		return nil, errors.New("private PostgreSQL: no directory given")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	p, err := choosePlace(dir, opts.Progress)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	s, err := p.enterServer(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL in %s: %w", p.dir, err)
	}
	return s, nil
}

// enterServer either joins the server or starts it. The start lock admits one process at a time;
// the guard holds it while it stops PostgreSQL.
func (p place) enterServer(ctx context.Context, opts Options) (*Server, error) {
	slow := time.AfterFunc(time.Second, func() { opts.Progress("waiting for another process that starts or stops PostgreSQL") })
	turn, err := lockFile(ctx, p.start, exclusive)
	slow.Stop()
	if err != nil {
		return nil, err
	}
	defer turn.close()
	users, err := lockFile(ctx, p.users, shared)
	if err != nil {
		return nil, err
	}
	peers, err := lockFile(ctx, p.peers, shared)
	if err != nil {
		users.close()
		return nil, err
	}
	s := &Server{Dir: p.dir, place: p, users: users, peers: peers}
	s.Joined, err = s.joinServer(ctx)
	if err == nil && !s.Joined {
		err = s.launchGuard(ctx, opts)
	}
	if err != nil {
		users.close()
		peers.close()
		return nil, err
	}
	held.Store(s, true)
	return s, nil
}

// held keeps servers that a caller forgot: the garbage collector would close their files, and
// release their locks, long before the process ends.
var held sync.Map

// DSN returns the URL of a database of this server, "postgres" if name is empty. psql accepts it
// too.
func (s *Server) DSN(name string) string {
	if name == "" {
		name = "postgres"
	}
	u := url.URL{Scheme: "postgres", User: url.User(User), Path: "/" + name}
	u.RawQuery = url.Values{"host": {s.at.sockets}, "port": {strconv.Itoa(s.at.port)}}.Encode()
	return u.String()
}

// LogFile returns the path of PostgreSQL's log.
func (s *Server) LogFile() string { return s.place.log }

// PID returns the current process id of the postmaster.
func (s *Server) PID() (int, error) {
	at, err := readPidfile(s.place.data)
	return at.pid, err
}

// watchEvery is the interval of Watch's checks.
const watchEvery = 500 * time.Millisecond

// Watch waits until the server ends permanently, and reports that, or until ctx ends. The guard
// restarts a PostgreSQL that died; a server that was stopped, that keeps dying or whose guard was
// killed is not restarted.
func (s *Server) Watch(ctx context.Context) error {
	guard, err := openLock(s.place.guard)
	if err != nil {
		return err
	}
	defer guard.close()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		ended, err := guard.tryLock(shared)
		if err != nil {
			return err
		}
		if ended {
			return fmt.Errorf("%w; see %s", ErrEnded, s.place.log)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Stop releases this process's share. If it was the last one and the server does not linger, Stop
// waits until PostgreSQL has shut down, or for ctx; the guard completes the shutdown either way.
func (s *Server) Stop(ctx context.Context) error {
	if s.users == nil {
		return nil
	}
	held.Delete(s)
	last, err := s.peers.tryLock(exclusive)
	s.users.close()
	s.peers.close()
	s.users, s.peers = nil, nil
	if err != nil || !last || s.task.Linger > 0 {
		return err
	}
	return s.awaitGuardEnd(ctx)
}
