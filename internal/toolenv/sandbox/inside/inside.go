// Package inside is what runs in a sandbox before the command does: the service's own
// executable, mounted at Path and started by bubblewrap as the second process of the
// new namespaces. It makes sockets in the sandbox's own network, hands them out, limits
// itself and becomes the command.
//
// Importing the package is enough. Its init finds out that the process is such a
// second stage and never returns then. It does so in an init, and the package imports
// little, because Go initialises packages in the order of their dependencies: this one
// comes long before those of the service, whose inits take longer than the rest of a
// run together.
package inside

const (
	// Path is where the executable is mounted.
	Path = "/run/init"
	// Control is the descriptor of the socket on which the second stage answers and is
	// told to go on.
	Control = 3
	// JobFile is the descriptor of a file with its Job.
	JobFile = 4
	// StageArgument makes it the second stage.
	StageArgument = "stage"
	// ReportArgument makes it, as a sandbox's command, say what it finds there.
	ReportArgument = "report"
)

// The second stage says Ready, with descriptors of process 1 and of the sockets, or
// Failed and what did. A byte tells it to go on; Control closes when the command begins.
const (
	Ready  = 'R'
	Failed = 'F'
)

// What a report's lines begin with; a tab and what was found follow.
const (
	UIDMap  = "uid_map"  // of its user namespace
	Status  = "status."  // and the name of a line of /proc/self/status
	Init    = "init."    // likewise, of process 1
	Visible = "visible." // and a path that it was asked for and that is there
	Unix    = "unix"     // why a unix socket cannot be made; no line: it can
	Sysctl  = "sysctl"   // why a setting of the kernel cannot be opened for writing; no line: it can
)
