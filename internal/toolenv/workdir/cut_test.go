package workdir_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// blade cuts the connections of a pool at a point chosen by the test.
type blade struct {
	mu     sync.Mutex
	left   int    // reads from the server before the cut; 0: never
	cancel func() // nil: the connection breaks; else the caller gives up instead
	cuts   int

	sent atomic.Int64 // bytes to the server
}

// arm sets the next cut.
func (b *blade) arm(after int, cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left, b.cancel = after, cancel
}

// strikes counts a read.
func (b *blade) strikes() (broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 {
		return false
	}
	if b.left--; b.left > 0 {
		return false
	}
	b.cuts++
	if b.cancel != nil {
		b.cancel()
		return false
	}
	return true
}

// cutConn is a connection to the server. When it breaks, the server has run the statement, and the
// response is lost.
type cutConn struct {
	net.Conn
	blade *blade
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.blade.strikes() {
		c.Conn.Close()
		return 0, errors.New("cut")
	}
	return n, err
}

func (c *cutConn) Write(p []byte) (int, error) {
	c.blade.sent.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// cuttable returns a pool whose connections can be cut.
func cuttable(t testing.TB, dsn string) (*pgxpool.Pool, *blade) {
	t.Helper()
	b := &blade{}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{conn, b}, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, b
}
