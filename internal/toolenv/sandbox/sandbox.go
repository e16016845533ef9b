// Package sandbox runs untrusted commands: with only the files of a folder and the system's
// programs, no network but the service, no privileges, and limits on time, memory, processes and
// disk. It is the only package that starts processes for an agent.
//
// The isolation consists of Linux namespaces, made by bubblewrap, a system call filter, and the
// kernel's resource limits. Without them Open fails with the reason and the remedy, and no command
// runs.
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

// Config sets the directory and the users of commands.
type Config struct {
	// Dir is the parent of the process's directory, which contains the executable, if needed, and
	// the folders; empty: the system's directory for temporary files.
	Dir string
	// Users run the commands of a service that runs as root; commands never run as root. Concurrent
	// commands have different users while there are enough.
	Users UserRange
	// Bwrap is the path of bubblewrap; empty: it is searched in PATH.
	Bwrap string
	// Root is a directory with a prepared system, which provides the programs instead of the host;
	// empty: the host's.
	Root string
	// Transparent allows commands with a Direct.
	Transparent bool
	Limits      Limits
	Log         *slog.Logger // nil: nothing is logged
}

// Limits limit one command and all its descendants. Zero fields have their default.
type Limits struct {
	Time      time.Duration // running time; 30 s
	CPU       time.Duration // for each process; 60 s
	Processes int           // including threads, at a time; 128
	Memory    int64         // for each process, and for all together, see Limited; 1 GiB
	Output    int64         // on stdout and stderr; 16 MiB
	File      int64         // size of a file; 64 MiB
	Temp      int64         // for /tmp, and for /dev/shm; 64 MiB
	Folder    int64         // on disk in Command.Folder, checked four times a second; 512 MiB
	Files     int           // in Command.Folder; 20 000
}

// Command describes a command.
type Command struct {
	Argv []string // Argv[0] is looked up in PATH
	// Env contains NAME=value. It cannot replace variables that the sandbox sets, such as PATH,
	// HOME and the proxy.
	Env []string
	// Folder is the host's directory that is mounted at /workspace, from NewFolder.
	Folder string
	// Attachments is the host's directory that is mounted read-only at /workspace/attachments;
	// empty: none.
	Attachments string
	// CA contains the only trusted certificates, in PEM; empty: none.
	CA []byte
	// Serve accepts connections to the proxy, 127.0.0.1:3128 inside. It returns when the listener
	// is closed. nil: no proxy.
	Serve func(ctx context.Context, l net.Listener) error
	// Direct serves programs that do not use the proxy, if Config.Transparent is set.
	Direct *Direct
	// Output receives stdout and stderr as they are written.
	Output io.Writer
	// Limits that are not zero replace the sandbox's.
	Limits Limits
}

// Direct serves programs without proxy support: they resolve a name, and connect to its address.
// The sandbox owns all addresses of 127.0.0.0/8, and has no others.
type Direct struct {
	DNS   func(ctx context.Context, c net.PacketConn) error // 127.0.0.1:53
	TLS   func(ctx context.Context, l net.Listener) error   // port 443 of every address
	Plain func(ctx context.Context, l net.Listener) error   // port 80 of every address
}

// Result describes how a command ended.
type Result struct {
	Exit   int           // its exit code; 128 plus the signal if one killed it
	Killed string        // limit that killed it, as in "killed after 30 s"; empty: none
	Took   time.Duration // from start to end
}

// Failure is the error of a sandbox that could not be made: the command did not run.
type Failure struct{ Reason string }

func (f *Failure) Error() string { return "sandbox: " + f.Reason }

// Unavailable is the reason why commands cannot be contained here, and the remedy.
type Unavailable struct {
	Reason string
	Remedy string
}

func (u *Unavailable) Error() string { return u.Reason + " " + u.Remedy }
