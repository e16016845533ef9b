// Package sandbox runs untrusted commands: with no files but those of a
// folder and the system's programs, no network but the service, no privileges, and
// bounds on time, memory, processes and disk. It is the only package that starts
// processes for an agent.
//
// The walls are Linux namespaces, made by bubblewrap, a system call filter, and the
// kernel's resource limits. Without them Open fails with the reason and the remedy, and no
// command runs.
//
// When Run returns, no process of its command is left; when the service is killed, so are all
// commands.
//
// A program that links the package is executed again as the first program inside: see package
// inside. It needs no code for that.
package sandbox

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"
)

// Config sets the directory and the user of commands.
type Config struct {
	// Dir is where a directory for the time of the process is made, with the
	// executable, where needed, and the folders; empty: the system's for temporary files.
	Dir string
	// Users run the commands of a service that is root, which they never are. Commands that
	// run at the same time have different users while there are enough.
	Users UserRange
	// Bwrap is bubblewrap's program; empty: it is looked up in PATH.
	Bwrap string
	// Root is a directory with a prepared system whose programs are there in place of
	// those of the host; empty: the host's.
	Root string
	// Transparent lets commands have a Direct.
	Transparent bool
	Limits      Limits
	Log         *slog.Logger // nil: nothing is logged
}

// Limits bound one command and all that it starts. Zero fields have their default.
type Limits struct {
	Time      time.Duration // until it is killed; 30 s
	CPU       time.Duration // of each process; 60 s
	Processes int           // and threads, at a time; 128
	Memory    int64         // of each process, and of all together, see Limited; 1 GiB
	Output    int64         // on stdout and stderr; 16 MiB
	File      int64         // size of a file; 64 MiB
	Temp      int64         // of /tmp, and of /dev/shm; 64 MiB
	Folder    int64         // on disk in Command.Folder, looked at four times a second; 512 MiB
	Files     int           // in Command.Folder; 20 000
}

// Command is what to run.
type Command struct {
	Argv []string // Argv[0] is looked up in PATH
	// Env has NAME=value. It cannot replace variables that the sandbox sets, such as PATH,
	// HOME and the proxy.
	Env []string
	// Folder is the host's directory that is /workspace, from NewFolder.
	Folder string
	// Attachments is the host's directory that is /workspace/attachments and cannot be
	// written; empty: none.
	Attachments string
	// CA has the only certificates that are trusted, in PEM; empty: none is.
	CA []byte
	// Serve accepts connections to the proxy, 127.0.0.1:3128 inside. It returns when the listener
	// is closed. nil: no proxy.
	Serve func(ctx context.Context, l net.Listener) error
	// Direct serves programs that do not use the proxy, where Config.Transparent is set.
	Direct *Direct
	// Output gets stdout and stderr as they come.
	Output io.Writer
	// Limits that are not zero replace the sandbox's.
	Limits Limits
}

// Direct serves what programs send when they know of no proxy: they look a name up, and
// connect to an address. Those of 127.0.0.0/8 are all the sandbox's own, and there are no
// others.
type Direct struct {
	DNS   func(ctx context.Context, c net.PacketConn) error // 127.0.0.1:53
	TLS   func(ctx context.Context, l net.Listener) error   // port 443 of every address
	Plain func(ctx context.Context, l net.Listener) error   // port 80 of every address
}

// Result is how a command ended.
type Result struct {
	Exit   int           // its exit code; 128 and the signal if one killed it
	Killed string        // which limit killed it, as in "killed after 30 s"; empty: none
	Took   time.Duration // from start to end
}

// Failure is a sandbox that could not be made: the command did not run.
type Failure struct{ Reason string }

func (f *Failure) Error() string { return "sandbox: " + f.Reason }

// Unavailable is why commands cannot be contained here, and what helps.
type Unavailable struct {
	Reason string
	Remedy string
}

func (u *Unavailable) Error() string { return u.Reason + " " + u.Remedy }
