// Package inside runs in a sandbox before the command does: the service's own executable, mounted
// at Path and started by bubblewrap as the second process of the new namespaces. It makes sockets
// in the sandbox's own network, passes them to the service, limits itself and becomes the command.
//
// Importing the package is enough. Its init detects that the process is such a second stage and
// then never returns. It does so in an init, and the package imports little, because Go initialises
// packages in the order of their dependencies: this one runs long before those of the service,
// whose inits take longer than the rest of a run together.
package inside

const (
	// Path is the mount point of the executable.
	Path = "/run/init"
	// Control is the descriptor of the socket on which the second stage answers and waits for the
	// byte to continue.
	Control = 3
	// JobFile is the descriptor of a file with its Job.
	JobFile = 4
	// StageArgument selects the second stage.
	StageArgument = "stage"
	// ReportArgument makes the executable, as a sandbox's command, report the properties of the
	// sandbox.
	ReportArgument = "report"
)

// The second stage sends Ready, with descriptors of process 1 and of the sockets, or Failed and the
// failed operation. One byte makes it continue; Control closes when the command begins.
const (
	Ready  = 'R'
	Failed = 'F'
)

// The keys of a report's lines, each followed by a tab and the value.
const (
	UIDMap  = "uid_map"  // uid_map of its user namespace
	Status  = "status."  // prefix of the name of a line of /proc/self/status
	Init    = "init."    // likewise, of process 1
	Visible = "visible." // prefix of a requested path that exists
	Unix    = "unix"     // why a unix socket cannot be made; no line: it can
	Sysctl  = "sysctl"   // why a setting of the kernel cannot be opened for writing; no line: it can
)
