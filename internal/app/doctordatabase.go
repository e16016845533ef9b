package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/migrations"
)

// minPostgres is the oldest version of PostgreSQL that Parley is tested with.
const minPostgres = 15

// dialDatabase opens a connection that works through every pooler: it prepares no statements.
func (d *doctor) dialDatabase(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgxpool.ParseConfig(d.stores.DSN.Reveal())
	if err != nil {
		return nil, &ConfigError{[]string{"DATABASE_URL cannot be read; it is like postgres://user:password@host:5432/database."}}
	}
	boundConnection(config.ConnConfig, "parley doctor")
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // the simple protocol needs it
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// checkDatabase opens the database. The other checks of the database need it.
func checkDatabase(ctx context.Context, d *doctor) (f Finding, err error) {
	d.cannot = "The database is not reachable."
	if d.stores.DSN == "" {
		if _, err := os.Stat(d.opt.DevDir); err != nil {
			return f, &StartError{Why: "DATABASE_URL is not set.", Do: "Set it, or run this command where serve --dev runs."}
		}
		if err := d.stores.findDev(ctx, d.stores.config, d.opt.DevDir); err != nil {
			return f, err
		}
	}
	if err := d.stores.findKeys(d.opt.DevDir); err != nil {
		return f, err
	}
	began := time.Now()
	conn, err := d.dialDatabase(ctx)
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return f, err
	}
	if err != nil {
		return f, unreachableError(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var number int
	var version, name, user string
	var reads bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_database(),
		current_user, current_setting('transaction_read_only')::bool`).Scan(&number, &version, &name, &user, &reads)
	if err != nil {
		return f, unreachableError(err)
	}
	if reads {
		d.cannot = "Nothing can be written to the database."
		return f, errReadOnly
	}
	took := time.Since(began)
	if d.stores.pool, err = openPool(ctx, d.stores.DSN, "parley doctor", commandConnections); err != nil {
		return f, err
	}
	d.cannot = "The encoding of the database is not UTF8."
	if err := checkEncoding(ctx, d.stores.pool); err != nil {
		return f, err
	}
	d.cannot = ""
	return versionFinding(number, fmt.Sprintf("PostgreSQL %s, database %s, role %s, reached in %s.", strings.Fields(version)[0], name, user,
		took.Round(100*time.Microsecond))), nil
}

func versionFinding(number int, result string) Finding {
	if number/10000 < minPostgres {
		return Finding{Grade: GradeWarn, Result: result,
			Remedy: fmt.Sprintf("Parley is tested with PostgreSQL %d and later. Upgrade PostgreSQL.", minPostgres)}
	}
	return okFinding("%s", result)
}

// checkPooler finds a connection pooler in front of PostgreSQL, and its mode: sessions keep their
// connection to PostgreSQL only in session mode.
func checkPooler(ctx context.Context, d *doctor) (f Finding, err error) {
	first, err := d.dialDatabase(ctx)
	if err != nil {
		return f, unreachableError(err)
	}
	defer first.Close(context.WithoutCancel(ctx))
	var backend int
	var name, at string
	err = first.QueryRow(ctx,
		"SELECT pg_backend_pid(), current_database(), coalesce(host(inet_server_addr()), '') || ' ' || "+
			"coalesce(inet_server_port(), 0)").Scan(&backend, &name, &at)
	if err != nil {
		return f, err
	}
	if int(first.PgConn().PID()) == backend { // a pooler invents the ids that it sends to clients
		return okFinding("None: DATABASE_URL names PostgreSQL itself."), nil
	}
	mode, err := poolMode(ctx, d, first, backend)
	if err != nil {
		return f, err
	}
	if mode == "session" {
		return okFinding(
			"A pooler in session mode. It must have a connection to PostgreSQL for each connection of each server: "+
				"PARLEY_DATABASE_CONNECTIONS and 3, %d.",
			d.stores.config.Connections+3), nil
	}
	d.cannot = "The pooler is in " + mode + " mode."
	place := "host=HOST"
	if host, port, ok := strings.Cut(at, " "); ok && host != "" {
		place = "host=" + host + " port=" + port
	}
	return Finding{Grade: GradeFail, Result: "A pooler in " + mode + " mode, which passes no notifications and keeps no settings.",
		Remedy: fmt.Sprintf(
			"Let DATABASE_URL name PostgreSQL itself, or give this database a pool in session mode. PgBouncer: in pgbouncer.ini below [databases]\n"+
				"%s = %s dbname=%s pool_mode=session\nand RELOAD.", name, place, name)}, nil
}

// poolMode occupies a connection to PostgreSQL with a transaction. In session mode, it is not the
// one of the first connection.
func poolMode(ctx context.Context, d *doctor, first *pgx.Conn, backend int) (string, error) {
	second, err := d.dialDatabase(ctx)
	if err != nil {
		return "", &StartError{Why: "The pooler has no second connection to PostgreSQL:", Do: "Give its pool more connections.", Err: err}
	}
	defer second.Close(context.WithoutCancel(ctx))
	if _, err := second.Exec(ctx, "BEGIN"); err != nil {
		if _, refused := errors.AsType[*pgconn.PgError](err); refused {
			return "statement", nil
		}
		return "", err
	}
	var other, now int
	if err := second.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&other); err != nil {
		return "", err
	}
	if other == backend {
		return "transaction", nil
	}
	brief, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err = first.QueryRow(brief, "SELECT pg_backend_pid()").Scan(&now)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", err
	case err != nil || now != backend: // it waits for a free connection, or has got another one
		return "transaction", nil
	}
	return "session", nil
}

// checkRights checks the rights of the role on the tables, and whether it can migrate.
func checkRights(ctx context.Context, d *doctor) (f Finding, err error) {
	var super, creates bool
	var lacks []string
	err = d.stores.pool.QueryRow(ctx, `SELECT rolsuper, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
       (SELECT coalesce(array_agg(relname::text ORDER BY relname), '{}') FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT (has_table_privilege(oid, 'SELECT')
            AND has_table_privilege(oid, 'INSERT')))
FROM pg_roles WHERE rolname = current_user`).Scan(&super, &creates, &lacks)
	switch {
	case err != nil:
		return f, err
	case len(lacks) > 0:
		return Finding{Grade: GradeFail, Result: fmt.Sprintf("The role cannot read or write %d tables, such as %s.", len(lacks), lacks[0]),
			Remedy: "Let the role own the tables, or grant it SELECT, INSERT, UPDATE, DELETE on them."}, nil
	case !creates && d.stores.config.Migrate == "auto":
		return Finding{Grade: GradeWarn, Result: "The role can read and write, but not migrate: it has no CREATE on the schema.",
			Remedy: "Grant it, or run parley migrate up as another role and set PARLEY_MIGRATE=check."}, nil
	case super && d.stores.dev == nil:
		return Finding{Grade: GradeWarn, Result: "The role is a superuser.",
			Remedy: "Let the server use a role of its own that owns its database."}, nil
	}
	return okFinding("The role can read, write and migrate."), nil
}

func checkDurability(ctx context.Context, d *doctor) (f Finding, err error) {
	var standbys string
	if err := d.stores.pool.QueryRow(ctx, "SHOW synchronous_standby_names").Scan(&standbys); err != nil {
		return f, err
	}
	limited, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	err = eventlog.AwaitStandbys(limited, d.stores.pool)
	switch {
	case standbys != "" && pgconn.Timeout(err):
		return Finding{Grade: GradeFail, Result: fmt.Sprintf("No commit ends: PostgreSQL waited %v for its synchronous standbys.", commitTimeout),
			Remedy: "Start a standby, or change synchronous_standby_names. pg_stat_replication shows which are connected."}, nil
	case err != nil:
		return f, err
	}
	if err := checkDurable(ctx, d.stores.pool); err != nil {
		f = failureFinding(err)
		if d.stores.config.Durability == "off" {
			f.Grade = GradeWarn
		}
		return f, nil
	}
	return okFinding("fsync and synchronous_commit are on, and commits end."), nil
}

// commitTimeout limits a test commit.
const commitTimeout = 3 * time.Second

func checkNotifications(ctx context.Context, d *doctor) (f Finding, err error) {
	began := time.Now()
	if err := checkListen(ctx, d.stores.pool); err != nil {
		return f, err
	}
	return okFinding("A notification arrived %s after the start of the test.", time.Since(began).Round(100*time.Microsecond)), nil
}

func checkMigrations(ctx context.Context, d *doctor) (f Finding, err error) {
	steps, err := migrations.Status(ctx, d.stores.DSN.Reveal())
	if err != nil {
		return f, err
	}
	pending := len(migrations.Pending(steps))
	switch {
	case pending == 0:
		return okFinding("The database has all %d.", len(steps)), nil
	case d.stores.config.Migrate == "check":
		return Finding{Grade: GradeFail, Result: fmt.Sprintf("The database lacks %d migrations of this release.", pending),
			Remedy: "Run parley migrate up."}, nil
	}
	d.cannot = "The database lacks migrations."
	return Finding{Grade: GradeWarn, Result: fmt.Sprintf("The database lacks %d migrations of this release.", pending),
		Remedy: "parley serve applies them at its start, and parley migrate up does now."}, nil
}

func checkVault(ctx context.Context, d *doctor) (f Finding, err error) {
	if d.stores.keys == "" {
		return Finding{Grade: GradeFail, Result: "There is no master key.", Remedy: d.stores.noKey}, nil
	}
	if _, err := d.stores.Keyring(ctx); err != nil {
		return f, err
	}
	if d.stores.config.Source("PARLEY_VAULT_KEY") == "environment" {
		return Finding{Grade: GradeWarn,
			Result: "The master keys fit the database, but are in the environment, where they are easily seen.",
			Remedy: "Put them into a file that only the service can read, and name it in PARLEY_VAULT_KEY_FILE."}, nil
	}
	return okFinding("The master keys fit the database."), nil
}

// maxSkew is how far the clocks of this machine and of the database may differ.
const maxSkew = 2 * time.Second

func checkClock(ctx context.Context, d *doctor) (f Finding, err error) {
	var at time.Time
	if err := d.stores.pool.Ping(ctx); err != nil { // the measured query needs no new connection
		return f, unreachableError(err)
	}
	sent := time.Now()
	if err := d.stores.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		return f, err
	}
	trip := time.Since(sent)
	return skewFinding(at.Sub(sent.Add(trip/2)), trip), nil
}

func skewFinding(skew, trip time.Duration) Finding {
	result := fmt.Sprintf("This machine and the database differ by %s; a query takes %s.", skew.Abs().Round(time.Millisecond),
		trip.Round(10*time.Microsecond))
	if skew.Abs() > maxSkew {
		return Finding{Grade: GradeFail, Result: result,
			Remedy: "Synchronize the clocks, with NTP for example. Signatures, certificates and sign-in depend on them."}
	}
	return okFinding("%s", result)
}
