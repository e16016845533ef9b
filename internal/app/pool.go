package app

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// poolSize is the number of connections where the address does not say
// pool_max_conns. Turns hold none while they wait for a model, streams never.
const poolSize = 24

// limits are the settings of every connection. Without them a replica behind a
// half-open link would hold locks for ever.
var limits = map[string]string{
	"statement_timeout":                   "5s",
	"lock_timeout":                        "2s",
	"idle_in_transaction_session_timeout": "5s",
	"tcp_user_timeout":                    "5s",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "2",
	"tcp_keepalives_count":                "3",
	"timezone":                            "UTC",
}

const connectTimeout = 3 * time.Second

// openPool prepares connections to the database; it does not need to be there yet.
func openPool(ctx context.Context, dsn Secret, name string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, &ConfigError{[]string{"DATABASE_URL cannot be read; it is like postgres://user:password@host:5432/database."}}
	}
	if !strings.Contains(dsn.Reveal(), "pool_max_conns") {
		config.MaxConns = poolSize
	}
	conn := config.ConnConfig
	for name, value := range limits {
		if _, chosen := conn.RuntimeParams[name]; !chosen {
			conn.RuntimeParams[name] = value
		}
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = name
	}
	if conn.ConnectTimeout == 0 || conn.ConnectTimeout > connectTimeout {
		conn.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		Control:         giveUp,
	}
	conn.DialFunc = dialer.DialContext
	config.AfterConnect = nativeUUID
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// closePool closes a pool, or leaves it to the end of the process if somebody does
// not give a connection back.
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
