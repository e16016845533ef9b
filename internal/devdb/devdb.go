// Package devdb owns a private PostgreSQL: the one behind `serve --dev` and behind the tests. It
// finds PostgreSQL's programs or downloads them, creates a data directory, and returns a DSN for a
// Unix socket; it opens no TCP port.
//
// Several processes may use one directory at once. Each holds a shared lock meanwhile, and the
// server ends when the last of them has ended, in any way:
//
//	users     every process between Start and its end: a shared flock on dir/users
//	guard     this binary again, waiting to get that lock alone; PostgreSQL's parent
//	postgres  gets SIGINT, its fast and clean shutdown, when the guard dies (Linux)
//
// A parent-death signal straight from the first user would stop the server for the processes that
// joined it; the guard prevents that. So kill -9 of a user ends PostgreSQL only if no other process
// uses it, kill -9 of PostgreSQL makes the guard restart it, and kill -9 of the guard ends
// PostgreSQL or, on systems without a parent-death signal, leaves it to be adopted by the next
// Start.
//
// The package never deletes data and never changes a data directory of another major version. A new
// directory is created under another name and then renamed, so that a crash leaves a complete one
// or none.
package devdb

import (
	"errors"
	"time"
)

// ErrNoPostgres is returned if PostgreSQL's programs are not installed and cannot be downloaded.
var ErrNoPostgres = errors.New("no PostgreSQL found")

// ErrEnded is returned for a server that was stopped, that keeps dying or whose guard was killed.
var ErrEnded = errors.New("PostgreSQL was stopped or keeps dying")

// User is the role that owns everything in a private server.
const User = "parley"

// Options configure a server. Only Dir is required. The process that starts the server decides; for
// processes that join it only Dir has an effect.
type Options struct {
	Dir      string            // holds data, log and locks; a test run by root passes it to Remove
	Progress func(line string) // receives slow and unusual steps; may be nil
	Settings map[string]string // PostgreSQL's, in addition to our own or overriding them

	Bin        string // like PARLEY_POSTGRES_BIN, which is used if this is empty
	Repository string // like PARLEY_POSTGRES_REPOSITORY

	// Disposable trades durability for speed. For tests.
	Disposable bool
	// Linger keeps the server running for a while after its last user has ended.
	Linger time.Duration
}
