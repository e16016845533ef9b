package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commandConnections is the size of the pool of an administrator's command.
const commandConnections = 4

const (
	dialTimeout    = 2 * time.Second
	connectTimeout = 3 * time.Second
	// pingTimeout bounds the check of a connection that was idle for a second. After a lost link
	// every idle connection can cost this much once.
	pingTimeout = 500 * time.Millisecond
	// statementTimeout is PostgreSQL's own limit. The client gives up clientSlack later.
	statementTimeout = 5 * time.Second
	clientSlack      = time.Second
)

// openPool prepares connections to the database, which does not need to be available yet. It opens
// at most size connections, unless the address has pool_max_conns. A new connection is used after the
// checks; programs that write need eventlog.CheckLineage.
func openPool(ctx context.Context, dsn Secret, name string, size int, checks ...func(context.Context, *pgx.Conn) error) (*pgxpool.Pool,
	error) {
	config, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, &ConfigError{[]string{"DATABASE_URL cannot be read; it is like postgres://user:password@host:5432/database."}}
	}
	if !strings.Contains(dsn.Reveal(), "pool_max_conns") {
		config.MaxConns = int32(size)
	}
	config.PingTimeout = cmp.Or(config.PingTimeout, pingTimeout)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		err := nativeUUID(ctx, conn)
		for _, check := range checks {
			if err == nil {
				err = check(ctx, conn)
			}
		}
		return err
	}
	boundConnection(config.ConnConfig, name)
	config.BeforeClose = freeSlot
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// boundConnection limits every wait for the network, so that a dead link cannot block its user:
// dialing, connecting, statements, and a peer that stops acknowledging packets. Listeners and River
// use the same configuration.
func boundConnection(conn *pgx.ConnConfig, name string) {
	conn.RuntimeParams["application_name"] = cmp.Or(conn.RuntimeParams["application_name"], name)
	if conn.ConnectTimeout == 0 || conn.ConnectTimeout > connectTimeout {
		conn.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: 2 * time.Second, Count: 2},
		Control:         setUserTimeout,
	}
	conn.DialFunc = dialer.DialContext
	conn.AfterConnect = applySettings(conn.RuntimeParams)
	conn.Tracer = deadline{limit: clientLimit(conn.RuntimeParams["statement_timeout"]), hosts: watchHosts(conn)}
}

// freeSlot closes the socket of a broken connection. Otherwise pgx would wait 15 s for the other
// side to close, and keep the connection's place in the pool meanwhile.
func freeSlot(c *pgx.Conn) {
	if c.IsClosed() {
		_ = c.PgConn().Conn().Close()
	}
}

// closePool closes a pool, or leaves it open until the process ends if a connection is not
// returned.
func closePool(pool *pgxpool.Pool, patience time.Duration) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
}
