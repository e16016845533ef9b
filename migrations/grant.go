package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/pgerr"
)

// Grant lets a role that does not own the tables run the service: it reads and writes them, except
// that it can only append to the log and to the log of changes. Up repeats it for such roles, so that
// they can use new tables. The DSN is that of the owner.
func Grant(ctx context.Context, dsn, role string) error {
	return asOwner(ctx, dsn, func(ctx context.Context, conn *pgx.Conn) error { return grantService(ctx, conn, role) })
}

// ownedObjects are the schema's objects that belong to the owner of the log, as GRANT names them.
const ownedObjects = `WITH owner AS (SELECT relowner AS id, relnamespace AS schema FROM pg_class WHERE oid = 'events'::regclass),
	kept AS (SELECT relid AS id FROM pg_partition_tree('events') UNION ALL SELECT 'admin_log'::regclass)
SELECT (SELECT schema::regnamespace::text FROM owner),
	(SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c, owner o WHERE c.relowner = o.id AND c.relnamespace = o.schema
		AND c.relkind IN ('r', 'p', 'v')
		AND c.oid NOT IN (SELECT id FROM kept)),
	(SELECT string_agg(id::text, ', ') FROM kept),
	(SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c, owner o WHERE c.relowner = o.id AND c.relnamespace = o.schema
		AND c.relkind = 'S'),
	(SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p, owner o WHERE p.proowner = o.id AND p.pronamespace = o.schema)`

func grantService(ctx context.Context, conn *pgx.Conn, role string) error {
	var schema, changed, kept, sequences, functions string
	if err := conn.QueryRow(ctx, ownedObjects).Scan(&schema, &changed, &kept, &sequences, &functions); err != nil {
		return fmt.Errorf("list the objects of the schema: %w", err)
	}
	to := " TO " + pgx.Identifier{role}.Sanitize()
	return runAll(ctx, conn, []string{
		"GRANT USAGE ON SCHEMA " + schema + to,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + changed + to,
		"GRANT SELECT, INSERT ON " + kept + to, // their rows are only appended
		"GRANT USAGE, SELECT, UPDATE ON SEQUENCE " + sequences + to,
		"GRANT EXECUTE ON FUNCTION " + functions + to,
	})
}

// Auditor is the role that may read the audit views, and nothing else.
const Auditor = "parley_auditor"

// GrantAudit lets a role read the audit views, through the role Auditor, which it makes if it is
// missing. The SQL of the error of a caller that may not do so is for an administrator of the
// database; once that has run, the same call succeeds.
func GrantAudit(ctx context.Context, dsn, role string) error {
	return asOwner(ctx, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		to := pgx.Identifier{role}.Sanitize()
		statements := []string{
			"GRANT USAGE ON SCHEMA audit TO " + Auditor,
			"GRANT SELECT ON ALL TABLES IN SCHEMA audit TO " + Auditor,
			"GRANT " + Auditor + " TO " + to,
			"ALTER ROLE " + to + " SET default_transaction_read_only = on",
		}
		var exists bool
		if err := requireRole(ctx, conn, role); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, hasRole, Auditor).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			statements = append([]string{
				"CREATE ROLE " + Auditor + " NOLOGIN",
				"ALTER ROLE " + Auditor + " SET default_transaction_read_only = on",
			}, statements...)
		}
		err := runAll(ctx, conn, statements)
		if pgerr.IsForbidden(err) && exists {
			var granted bool
			if err := conn.QueryRow(ctx, canAudit, role, Auditor).Scan(&granted); err != nil || granted {
				return err // an administrator has run the SQL
			}
		}
		return orSQL(err, statements)
	})
}

// canAudit reports whether every statement of GrantAudit has taken effect.
const canAudit = `SELECT pg_has_role($1, $2, 'MEMBER') AND has_schema_privilege($2, 'audit', 'USAGE')
	AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'audit'::regnamespace AND relkind IN ('r', 'p', 'v')
		AND NOT has_table_privilege($2, oid, 'SELECT'))
	AND (SELECT coalesce('default_transaction_read_only=on' = ANY (rolconfig), false) FROM pg_roles WHERE rolname = $1)`

// RevokeAudit takes that right away.
func RevokeAudit(ctx context.Context, dsn, role string) error {
	return asOwner(ctx, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		if err := requireRole(ctx, conn, role); err != nil {
			return err
		}
		from := pgx.Identifier{role}.Sanitize()
		statements := []string{"REVOKE " + Auditor + " FROM " + from, "ALTER ROLE " + from + " RESET default_transaction_read_only"}
		return orSQL(runAll(ctx, conn, statements), statements)
	})
}

// ErrNoRole is the error of a grant to a role that does not exist.
var ErrNoRole = errors.New("the role does not exist")

const hasRole = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"

func requireRole(ctx context.Context, conn *pgx.Conn, role string) error {
	var exists bool
	if err := conn.QueryRow(ctx, hasRole, role).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return ErrNoRole
	}
	return nil
}

// NotAllowed is the error of a role that may not run the statements. SQL is for one that may.
type NotAllowed struct {
	SQL string
	Err error
}

func (e *NotAllowed) Error() string { return "this role may not do that: " + e.Err.Error() }

func (e *NotAllowed) Unwrap() error { return e.Err }

// Why returns PostgreSQL's reason.
func (e *NotAllowed) Why() string {
	if pg, ok := errors.AsType[*pgconn.PgError](e.Err); ok {
		return "PostgreSQL: " + pg.Message + "."
	}
	return e.Err.Error() + "."
}

// orSQL adds the statements to the error of a caller that may not run them.
func orSQL(err error, statements []string) error {
	if pgerr.IsForbidden(err) {
		return &NotAllowed{SQL: strings.Join(statements, ";\n") + ";", Err: err}
	}
	return err
}

// runAll runs statements in one transaction.
func runAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// asOwner opens a connection for a few statements.
func asOwner(ctx context.Context, dsn string, do func(context.Context, *pgx.Conn) error) error {
	m, err := open(ctx, dsn, Options{})
	if err != nil {
		return err
	}
	defer m.close()
	return m.onConn(ctx, do)
}

// onConn calls do with a connection of its own.
func (m *migrator) onConn(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, m.config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		conn.Close(ctx)
	}()
	return do(ctx, conn)
}

// serviceRoles are the roles that Grant was called for: they write sessions and do not own them.
const serviceRoles = `SELECT DISTINCT pg_get_userbyid(a.grantee)::text FROM pg_class c, aclexplode(c.relacl) a
	WHERE c.oid = to_regclass('sessions') AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner)`

// isAudited reports whether GrantAudit was called.
const isAudited = `SELECT coalesce(has_schema_privilege(to_regrole($1)::oid, 'audit', 'USAGE'), false)`

// repeatGrants repeats the grants after migrations, which may have made tables and views.
func (m *migrator) repeatGrants(ctx context.Context) error {
	return m.onConn(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, serviceRoles)
		if err != nil {
			return fmt.Errorf("look for roles of the service: %w", err)
		}
		roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("look for roles of the service: %w", err)
		}
		for _, role := range roles {
			if err := grantService(ctx, conn, role); err != nil {
				return fmt.Errorf("grant to %s: %w", role, err)
			}
		}
		var audited bool
		if err := conn.QueryRow(ctx, isAudited, Auditor).Scan(&audited); err != nil {
			return fmt.Errorf("look for the role of auditors: %w", err)
		}
		if !audited {
			return nil
		}
		return runAll(ctx, conn, []string{"GRANT SELECT ON ALL TABLES IN SCHEMA audit TO " + Auditor})
	})
}

// ownsLog reports whether the caller has the rights of the owner of the log. A role that runs the
// service without them can call Up, too, as long as nothing is missing.
func (m *migrator) ownsLog(ctx context.Context) (owns bool, err error) {
	const query = `SELECT to_regprocedure('events_indexes(text)') IS NOT NULL
		AND (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = to_regclass('events'))`
	if err := m.pool.QueryRow(ctx, query).Scan(&owns); err != nil {
		return false, fmt.Errorf("look for the owner of the log: %w", err)
	}
	return owns, nil
}
