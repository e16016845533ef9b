package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/pgerr"
)

// StartError explains why the service does not start, and the remedy.
type StartError struct {
	Why       string
	Do        string
	Err       error // the cause; may be nil
	Temporary bool  // the same start can succeed later
}

func (e *StartError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return e.Why + " " + pgerr.Cause(e.Err).Error()
}
func (e *StartError) Unwrap() error { return e.Err }

// awaitDatabase waits for the database and returns PostgreSQL's version. Errors that need an
// administrator end it at once; for the others it retries until patience is over, or forever if
// patience is 0. waiting, which may be nil, is called with the reason at first and then every
// waitingEvery.
func awaitDatabase(parent context.Context, pool *pgxpool.Pool, patience time.Duration, waiting func(error)) (string, error) {
	ctx := parent
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(parent, patience)
		defer cancel()
	}
	var reported time.Time
	for {
		version, err := serverVersion(ctx, pool)
		if err == nil {
			return version, nil
		}
		if parent.Err() != nil {
			return "", context.Cause(parent)
		}
		if !isTemporary(err) || ctx.Err() != nil {
			return "", unreachableError(err)
		}
		if waiting != nil && time.Since(reported) >= waitingEvery {
			waiting(unreachableError(err))
			reported = time.Now()
		}
		wait := time.NewTimer(250 * time.Millisecond)
		select {
		case <-ctx.Done():
			wait.Stop()
			if parent.Err() != nil {
				return "", context.Cause(parent)
			}
			return "", unreachableError(err)
		case <-wait.C:
		}
	}
}

// waitingEvery is how often a service that waits for its database reports it.
const waitingEvery = 10 * time.Second

// serverVersion queries once. Its time is bounded because a link that accepts connections and
// delivers nothing must not look like a slow start.
func serverVersion(ctx context.Context, pool *pgxpool.Pool) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = pool.QueryRow(ctx, "SHOW server_version").Scan(&version)
	version, _, _ = strings.Cut(version, " ") // "15.18 (Debian …)"
	return version, err
}

// isTemporary reports whether an error is temporary. Other errors need an administrator: a wrong
// password, a database that does not exist.
func isTemporary(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgerr.OfState(pg.Code).IsTransient()
	}
	return true
}

// unreachableError returns why a connection failed, without pgx's repetitions.
func unreachableError(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusedError(pg)
	}
	if errors.Is(err, pgerr.ErrNoStandby) {
		return &StartError{Why: "PostgreSQL waits for its synchronous standbys.", Temporary: true,
			Do: "Start a standby, or change synchronous_standby_names."}
	}
	return &StartError{Why: "PostgreSQL cannot be reached:", Do: "Start PostgreSQL, or correct DATABASE_URL.", Err: err, Temporary: true}
}

// errReadOnly is the error of a standby.
var errReadOnly = &StartError{Why: "PostgreSQL is a standby, or read-only: nothing can be written there.",
	Do: "Let DATABASE_URL name the primary."}

// refusedError returns what to do about an error of PostgreSQL that prevented a connection.
func refusedError(pg *pgconn.PgError) error {
	switch {
	case pgerr.IsReadOnly(pg):
		return errReadOnly
	case pgerr.IsForbidden(pg):
		return &StartError{Why: "PostgreSQL refused a statement: " + pg.Message + ".", Do: "Let DATABASE_URL name a role with more rights."}
	case isTemporary(pg):
		return &StartError{Why: "PostgreSQL accepts no connection now: " + pg.Message + ".", Do: "Try again later.", Temporary: true}
	}
	return &StartError{Why: "PostgreSQL refused the connection: " + pg.Message + ".",
		Do: "Check the user, the password and the database in DATABASE_URL."}
}

// checkDurable rejects a database that can lose acknowledged data.
func checkDurable(ctx context.Context, pool *pgxpool.Pool) error {
	var fsync, commit string
	err := pool.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&fsync, &commit)
	if err != nil {
		return fmt.Errorf("read the database's settings: %w", err)
	}
	if fsync == "off" || commit == "off" {
		return &StartError{
			Why: fmt.Sprintf("PostgreSQL runs with fsync=%s and synchronous_commit=%s: it can lose messages that it has accepted.", fsync, commit),
			Do:  "Set both to on in postgresql.conf, or for this database with ALTER DATABASE … SET synchronous_commit = on.",
		}
	}
	return nil
}

// checkEncoding rejects a database that cannot store every character: in another encoding than UTF8,
// PostgreSQL counts bytes as characters or rejects escapes in JSON.
func checkEncoding(ctx context.Context, pool *pgxpool.Pool) error {
	var encoding string
	if err := pool.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return fmt.Errorf("read the database's encoding: %w", err)
	}
	if encoding == "UTF8" {
		return nil
	}
	return &StartError{
		Why: fmt.Sprintf("The encoding of the database is %s, not UTF8: it cannot store every text.", encoding),
		Do:  "Create a database with CREATE DATABASE … ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0, and let DATABASE_URL name it.",
	}
}

// checkListen checks that a notification arrives. Through a transaction pooler, LISTEN succeeds and
// then stays silent forever.
func checkListen(parent context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(parent, 3*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig.Copy())
	if err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	channel := "parley_probe_" + strings.ToLower(rand.Text()[:12])
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := pool.Exec(ctx, "NOTIFY "+channel); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	if _, err := conn.WaitForNotification(ctx); err != nil {
		if ctx.Err() == nil || parent.Err() != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		if err := pingConnection(parent, conn); err != nil { // the link is at fault, not the pooler
			return fmt.Errorf("wait for a notification: %w", err)
		}
		return &StartError{
			Why: "LISTEN gets no notifications, as behind PgBouncer in transaction mode.",
			Do:  "Let DATABASE_URL name PostgreSQL itself, or a pooler in session mode.",
		}
	}
	return nil
}

// pingConnection reports whether a connection still works.
func pingConnection(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return conn.Ping(ctx)
}
