// Package pgerr classifies the failures of PostgreSQL and of the connection to it. It is the only
// package that reads a SQLSTATE. Callers ask how they can handle an error, and get the same answer
// in every package.
package pgerr

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Of returns the class of the failure in an error chain.
func Of(err error) Class {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return Unavailable // for any reason, this process has no connection
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if pg.Code == featureNotSupported && pg.Routine != revalidate {
			return Other
		}
		return OfState(pg.Code)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Other
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case isBrokenConnection(err):
		return Unavailable
	}
	return Other
}

// IsTransient reports whether the same transaction can succeed later.
func IsTransient(err error) bool { return Of(err).IsTransient() }

// IsTransient reports whether a failure of this class passes by itself.
func (c Class) IsTransient() bool {
	switch c {
	case Unavailable, Contended, TimedOut, StalePlan:
		return true
	}
	return false
}

// IsContended reports whether another transaction held a lock that this one needed.
func IsContended(err error) bool { return Of(err) == Contended }

// IsStalePlan reports whether a prepared statement no longer fits the schema. The transaction is
// aborted; a new one that plans its statements again succeeds.
func IsStalePlan(err error) bool { return Of(err) == StalePlan }

// IsUniqueViolation reports whether the row already exists.
func IsUniqueViolation(err error) bool { return Of(err) == UniqueViolation }

// IsForeignKeyViolation reports whether another row still refers to this one, or the referenced row
// is missing.
func IsForeignKeyViolation(err error) bool { return Of(err) == ForeignKeyViolation }

// IsDuplicateObject reports whether a database, a table or another object of that name exists.
func IsDuplicateObject(err error) bool { return Of(err) == DuplicateObject }

// IsUndefinedTable reports whether a table does not exist.
func IsUndefinedTable(err error) bool { return Of(err) == UndefinedTable }

// IsForbidden reports whether the role lacks a privilege.
func IsForbidden(err error) bool { return Of(err) == Forbidden }

// Constraint returns the name of the violated constraint, or "".
func Constraint(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.ConstraintName
	}
	return ""
}

// IsRefused reports whether PostgreSQL is known to have committed nothing: it returned an ERROR, or
// the statement was never sent. The fate of any other failed commit is unknown. A FATAL or PANIC
// response proves nothing: a stopping server can send it after the commit.
func IsRefused(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.SeverityUnlocalized != "FATAL" && pg.SeverityUnlocalized != "PANIC" && pg.Code != resolutionUnknown &&
			pg.Code != completionUnknown
	}
	return pgconn.SafeToRetry(err)
}

// IsUnconfirmed reports whether a failure of the connection or a deadline leaves the fate of a
// write unknown: PostgreSQL may have committed it.
func IsUnconfirmed(err error) bool { return IsTransient(err) && !IsRefused(err) }

// IsLost reports whether this process has no connection to PostgreSQL, or none that it may use, or has
// lost it to a shutdown.
// A failed network connection is not enough: it may be to another server.
func IsLost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || errors.Is(err, ErrNoStandby) {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08"))
}

// ErrNoStandby is the reason why a connection or a commit waits although PostgreSQL can be reached.
var ErrNoStandby = errors.New("PostgreSQL waits for its synchronous standbys; start one, or change synchronous_standby_names")

// IsReadOnly reports whether PostgreSQL accepts no writes, as a standby does.
func IsReadOnly(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == readOnlyTransaction || pg.Code == wrongState)
}

// IsDiskFull reports whether PostgreSQL had no space to write.
func IsDiskFull(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == diskFull
}

// isBrokenConnection recognizes the errors of a connection that has failed or been closed.
func isBrokenConnection(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE)
}

// IsSuperseded reports whether a change names a position of the log of changes, and its object was
// changed after that.
func IsSuperseded(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && OfState(pg.Code) == Superseded
}

// IsInvalidValue reports whether the type of a value does not accept it. state is the SQLSTATE: the
// message can have the value.
func IsInvalidValue(err error) (state string, ok bool) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || OfState(pg.Code) != InvalidValue {
		return "", false
	}
	return pg.Code, true
}

// IsQuotaExceeded reports whether the transaction would exceed the storage quota of its workspace.
// message is a sentence for the caller.
func IsQuotaExceeded(err error) (message string, ok bool) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || OfState(pg.Code) != QuotaExceeded {
		return "", false
	}
	return pg.Message, true
}
