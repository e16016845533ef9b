package pgerr_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func TestStatesHaveAClass(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]pgerr.Class{
		"08006": pgerr.Unavailable, "53100": pgerr.Unavailable, "53300": pgerr.Unavailable, "57P01": pgerr.Unavailable,
		"57P03": pgerr.Unavailable, "25006": pgerr.Unavailable, "58030": pgerr.Unavailable,
		"40001": pgerr.Contended, "40P01": pgerr.Contended, "55P03": pgerr.Contended,
		"57014": pgerr.TimedOut, "25P03": pgerr.TimedOut, "25P04": pgerr.TimedOut, "26000": pgerr.StalePlan,
		"23505": pgerr.UniqueViolation, "23503": pgerr.ForeignKeyViolation, "42P04": pgerr.DuplicateObject, "54000": pgerr.TooLarge,
		"PQ001": pgerr.QuotaExceeded, "PQ002": pgerr.Superseded,
		"22021": pgerr.InvalidValue, "22003": pgerr.InvalidValue, "42703": pgerr.Other, "XX000": pgerr.Other, "": pgerr.Other, "5": pgerr.Other,
		"0A000": pgerr.Other, // any unsupported feature, see TestStalePlan
	} {
		err := fmt.Errorf("read session: %w", &pgconn.PgError{Code: state})
		if got := pgerr.Of(err); got != want {
			t.Errorf("SQLSTATE %q: class %d, want %d", state, got, want)
		}
		transient := want == pgerr.Unavailable || want == pgerr.Contended || want == pgerr.TimedOut || want == pgerr.StalePlan
		if pgerr.IsTransient(err) != transient {
			t.Errorf("SQLSTATE %q: transient is %v", state, !transient)
		}
		if !pgerr.IsRefused(err) {
			t.Errorf("SQLSTATE %q: a response of PostgreSQL means that nothing was committed", state)
		}
	}
}

func TestBrokenConnectionsAreTransient(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, pgx.ErrTxClosed,
		context.DeadlineExceeded, os.ErrDeadlineExceeded, &net.OpError{Op: "read", Err: errors.New("broken")},
	} {
		if err := fmt.Errorf("commit: %w", err); !pgerr.IsTransient(err) || pgerr.IsRefused(err) {
			t.Errorf("%v: transient %v, refused %v; want true, false", err, pgerr.IsTransient(err), pgerr.IsRefused(err))
		} else if !pgerr.IsUnconfirmed(err) {
			t.Errorf("%v: want an unconfirmed write", err)
		}
	}
	for _, err := range []error{nil, errors.New("a mistake"), context.Canceled, pgx.ErrNoRows} {
		if pgerr.IsTransient(err) {
			t.Errorf("%v is transient", err)
		}
	}
}

// TestFatalAnswerProvesNothing checks that FATAL leaves the outcome open: a server that stops can
// send it after the commit.
func TestFatalAnswerProvesNothing(t *testing.T) {
	t.Parallel()
	for code, severity := range map[string]string{"57P02": "FATAL", "53100": "PANIC"} {
		err := &pgconn.PgError{Code: code, SeverityUnlocalized: severity}
		if pgerr.IsRefused(err) || !pgerr.IsTransient(err) {
			t.Errorf("%s: refused %v, transient %v; want false, true", severity, pgerr.IsRefused(err), pgerr.IsTransient(err))
		}
	}
}

// A database that rejects a connection, for any reason, has received no statement.
func TestRefusedConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(dbtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Database = "no_such_database"
	_, err = pgx.ConnectConfig(t.Context(), config)
	if pgerr.Of(err) != pgerr.Unavailable || !pgerr.IsRefused(err) {
		t.Fatalf("class %d, refused %v: %v", pgerr.Of(err), pgerr.IsRefused(err), err)
	}
}

func TestStalePlan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dbtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "CREATE TABLE widened (n int); INSERT INTO widened VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := conn.QueryRow(ctx, "SELECT n FROM widened").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "ALTER TABLE widened ALTER COLUMN n TYPE bigint"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(ctx, "SELECT n FROM widened").Scan(&n); !pgerr.IsStalePlan(err) || !pgerr.IsTransient(err) {
		t.Fatalf("the statement planned before the change: %v", err)
	}
	_, err = conn.Exec(ctx, "SELECT DISTINCT n FROM widened FOR UPDATE") // 0A000 too
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "0A000" || pgerr.IsTransient(err) {
		t.Fatalf("an unsupported feature: %v", err)
	}
}
