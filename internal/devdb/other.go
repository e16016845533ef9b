//go:build !unix

package devdb

import (
	"context"
	"errors"
)

// Server is not supported on this system.
type Server struct {
	Version, Dir string
	Joined       bool
}

var errSystem = errors.New("a private PostgreSQL needs Unix; set DATABASE_URL")

// TryLock does nothing on this system and reports success.
func TryLock(string) (release func(), held bool, err error) { return func() {}, true, nil }

// Start fails.
func Start(context.Context, Options) (*Server, error) { return nil, errSystem }

// Remove fails.
func Remove(context.Context, string) error { return errSystem }

// DSN is empty.
func (*Server) DSN(string) string { return "" }

// LogFile is empty.
func (*Server) LogFile() string { return "" }

// PID fails.
func (*Server) PID() (int, error) { return 0, errSystem }

// Watch fails.
func (*Server) Watch(context.Context) error { return errSystem }

// Stop does nothing.
func (*Server) Stop(context.Context) error { return nil }
