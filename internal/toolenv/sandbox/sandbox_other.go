//go:build !linux

package sandbox

import "context"

var otherSystem = &Unavailable{
	Reason: "Commands are contained with namespaces of Linux, which this system does not have.",
	Remedy: "Run the service on Linux, in a virtual machine or a container.",
}

// Sandbox runs commands; this system does not support it.
type Sandbox struct{}

// Open returns an *Unavailable: only Linux can contain commands.
func Open(context.Context, Config) (*Sandbox, error) { return nil, otherSystem }

// Run runs a command.
func (s *Sandbox) Run(context.Context, Command) (Result, error) { return Result{}, otherSystem }

// NewFolder makes an empty folder that only commands can read.
func (s *Sandbox) NewFolder(string) (string, error) { return "", otherSystem }

// Give changes the owner of a file, or of a folder and everything in it, to the commands' user.
func (s *Sandbox) Give(string) error { return otherSystem }

// Remove removes a folder.
func (s *Sandbox) Remove(string) error { return otherSystem }

// Limited is an *Unavailable.
func (s *Sandbox) Limited() error { return otherSystem }

// Close removes the sandbox's files on disk.
func (s *Sandbox) Close() error { return otherSystem }

func usersRunning() []UserRange { return nil }
