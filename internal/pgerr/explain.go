package pgerr

import (
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// Explain returns a sentence for an operator about a failure that needs one, and the remedy. Both
// are "" for all other errors.
func Explain(err error) (why, remedy string) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return "", ""
	}
	switch OfState(pg.Code) {
	case UndefinedTable:
		return "The database lacks a table of this release: " + pg.Message + ".", "Run parley migrate up."
	case Forbidden:
		return "The role of DATABASE_URL lacks a privilege: " + pg.Message + ".",
			"Use the role that owns the tables, or let that role run parley migrate grant ROLE."
	}
	return "", ""
}

// Cause returns why a connection failed, in one line: pgx lists each attempt, and some causes twice.
// Other errors are returned unchanged.
func Cause(err error) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); !ok {
		return err
	}
	if inner, ok := errors.AsType[*pgconn.PgError](err); ok {
		return inner
	}
	if inner, ok := errors.AsType[*net.DNSError](err); ok {
		return inner
	}
	if inner, ok := errors.AsType[*net.OpError](err); ok {
		return inner
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}
