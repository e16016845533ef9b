package door

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
)

// Unavailable tells the failures of the database that pass from those that are
// mistakes: lost connections, restarts, time-outs, a full disk, too many clients.
func Unavailable(err error) bool {
	if pg, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		switch state := pg.SQLState(); state[:min(2, len(state))] {
		case "08", "40", "53", "55", "57":
			return true
		}
		// Ended by idle_in_transaction_session_timeout; a standby that was the primary.
		return pg.SQLState() == "25P03" || pg.SQLState() == "25006"
	}
	if unsent, ok := errors.AsType[interface {
		error
		SafeToRetry() bool
	}](err); ok && unsent.SafeToRetry() {
		return true
	}
	_, op := errors.AsType[net.Error](err)
	return op || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
}
