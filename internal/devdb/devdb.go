// Package devdb owns a private PostgreSQL: the one behind `serve --dev` and
// behind the tests. It finds PostgreSQL's programs or fetches them, makes a data
// directory, and hands out a DSN for a Unix socket; there is no TCP port.
//
// Several processes may use one directory at once. Each holds a shared lock while
// it does, and the server ends when the last of them is gone, however it went:
//
//	users     every process between Start and its end: a shared flock on dir/users
//	guard     this binary again, waiting to get that lock alone; PostgreSQL's parent
//	postgres  gets SIGINT, its fast and clean shutdown, when the guard dies (Linux)
//
// A parent-death signal straight from the first user would take the server away
// from those who joined it; the guard is why it does not. So kill -9 of a user
// ends PostgreSQL only if nobody else uses it, kill -9 of PostgreSQL makes the
// guard start it again, and kill -9 of the guard ends PostgreSQL or, where there
// is no parent-death signal, leaves it to be adopted by the next Start.
//
// The package never deletes data and never touches a data directory of another
// major version. A new directory is made aside and then renamed, so that a crash
// leaves a whole one or none.
package devdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// ErrNoPostgres says that PostgreSQL's programs are neither here nor to be had.
var ErrNoPostgres = errors.New("no PostgreSQL found")

// User is the role that owns everything in a private server.
const User = "parley"

// Options say where and how. Only Dir is required. Whoever starts the server
// decides; for those who join it everything but Dir is settled already.
type Options struct {
	Dir      string            // holds data, log and locks
	Progress func(line string) // told what takes long and what is unusual; may be nil
	Settings map[string]string // PostgreSQL's, beside or instead of our own

	// Disposable gives durability up for speed. For tests.
	Disposable bool
	// Linger keeps the server for a while after its last user is gone.
	Linger time.Duration
}

// Server is this process's share in a running PostgreSQL.
type Server struct {
	Version string // "15.18"
	Dir     string // where the data really is; not always Options.Dir, see Start
	Joined  bool   // it was running already

	place place
	users *flock
	guard *exec.Cmd // if this process started it
	task  task
	at    pidfile
}

// Start joins the server on opts.Dir, or starts it, or makes it first. PostgreSQL
// refuses to run as root: then it runs as the user postgres, else nobody, and if
// that user cannot reach opts.Dir the data goes below /var/tmp, which Progress
// and Server.Dir tell.
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
	p, err := settle(dir, opts.Progress)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	s, err := p.enter(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL in %s: %w", p.dir, err)
	}
	return s, nil
}

// enter decides between joining and starting. The start lock makes that one
// process at a time; the guard holds it while it stops PostgreSQL.
func (p place) enter(ctx context.Context, opts Options) (*Server, error) {
	turn, err := lockFile(ctx, p.start, exclusive)
	if err != nil {
		return nil, err
	}
	defer turn.close()
	users, err := lockFile(ctx, p.users, shared)
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: p.dir, place: p, users: users}
	s.Joined, err = s.join(ctx)
	if err == nil && !s.Joined {
		err = s.launch(ctx, opts)
	}
	if err != nil {
		users.close()
		return nil, err
	}
	return s, nil
}

// DSN names a database of this server, "postgres" when name is empty. It is a URL
// that psql understands too.
func (s *Server) DSN(name string) string {
	if name == "" {
		name = "postgres"
	}
	u := url.URL{Scheme: "postgres", User: url.User(User), Path: "/" + name}
	u.RawQuery = url.Values{"host": {s.at.sockets}, "port": {strconv.Itoa(s.at.port)}}.Encode()
	return u.String()
}

// LogFile is where PostgreSQL writes.
func (s *Server) LogFile() string { return s.place.log }

// PID is the postmaster's at this moment.
func (s *Server) PID() (int, error) {
	at, err := readPidfile(s.place.data)
	return at.pid, err
}

// Stop gives this process's share up. If it was the last one and the server does
// not linger, Stop waits until PostgreSQL has shut down, or for ctx; the guard
// finishes either way.
func (s *Server) Stop(ctx context.Context) error {
	if s.users == nil {
		return nil
	}
	last, err := s.users.try(exclusive)
	s.users.close()
	s.users = nil
	if err != nil || !last || s.task.Linger > 0 {
		return err
	}
	return s.gone(ctx)
}
