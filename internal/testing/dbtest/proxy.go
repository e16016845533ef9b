package dbtest

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
)

// Proxy starts a fault proxy to the server of dsn, which it closes when the test ends, and
// returns the DSN of the same database through it.
func Proxy(t testing.TB, dsn string) (*faultproxy.Proxy, string) {
	t.Helper()
	target, err := address(dsn)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	p := faultproxy.New(t, target)
	return p, through(dsn, p.Addr())
}

// address returns the host:port or the Unix socket of a DSN, as a proxy's target.
func address(dsn string) (string, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(config.Host) {
		return filepath.Join(config.Host, fmt.Sprintf(".s.PGSQL.%d", config.Port)), nil
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), nil
}

// through returns dsn with another address. TLS is off: a proxy's hook sees plain messages.
func through(dsn, addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return fmt.Sprintf("%s host=%s port=%s sslmode=disable", dsn, host, port) // the last value counts
	}
	u.Host = addr
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	return u.String()
}
