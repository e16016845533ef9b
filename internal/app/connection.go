package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// settings are those of every connection. Without them a replica behind a half-open link would hold
// locks forever. They are set by statement and not when connecting: PgBouncer rejects parameters
// that it does not know.
var settings = []struct{ name, value string }{
	{"statement_timeout", statementTimeout.String()},
	{"lock_timeout", "2s"},
	{"idle_in_transaction_session_timeout", "5s"},
	{"tcp_user_timeout", "5s"},
	{"tcp_keepalives_idle", "5"},
	{"tcp_keepalives_interval", "2"},
	{"tcp_keepalives_count", "3"},
	{"timezone", "UTC"},
}

// applySettings returns a function that applies the settings to a new connection, except those that
// the address sets itself.
func applySettings(chosen map[string]string) pgconn.AfterConnectFunc {
	var sql strings.Builder
	for _, s := range settings {
		if _, ok := chosen[s.name]; !ok {
			fmt.Fprintf(&sql, "SET %s = '%s';", s.name, s.value)
		}
	}
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout) // the connection's own timeout ends earlier
		defer cancel()
		if err := conn.Exec(ctx, sql.String()).Close(); err != nil {
			return fmt.Errorf("set up the connection: %w", err)
		}
		return nil
	}
}

// clientLimit returns how long the client waits for a statement, given the statement_timeout of the
// address or "". 0 means no limit, as in PostgreSQL.
func clientLimit(chosen string) time.Duration {
	limit := statementTimeout
	if ms, err := strconv.Atoi(chosen); err == nil {
		limit = time.Duration(ms) * time.Millisecond
	} else if d, err := time.ParseDuration(strings.ReplaceAll(chosen, " ", "")); err == nil {
		limit = d
	} else if chosen != "" {
		return 0 // a unit that only PostgreSQL can parse
	}
	if limit == 0 {
		return 0
	}
	return limit + clientSlack
}
