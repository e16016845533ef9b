package app

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// suspectPatience is how long a suspect host may take until its connection is ready.
	suspectPatience = 500 * time.Millisecond
	// suspectFor is how long a host is suspect if no other host has accepted a connection.
	suspectFor = 5 * time.Second
)

// hosts remembers which of several PostgreSQL servers have lost connections. pgx tries the hosts of
// an address in their order, each for connectTimeout. After a failover from a machine that went
// silent, every new connection would wait that long before it tries the new primary. A host that
// lost a connection is suspect, and gets suspectPatience, until it accepts a connection again.
type hosts struct {
	mu     sync.Mutex
	lost   map[string]time.Time // when an address lost a connection; removed when it accepts one
	chosen string               // the address of the newest connection
	since  time.Time            // when that connection was made
}

// watchHosts gives the connections of an address with several hosts that memory. With one host it
// does nothing, and returns nil.
func watchHosts(conn *pgx.ConnConfig) *hosts {
	several := false
	for _, f := range conn.Fallbacks { // those of the same host differ in TLS
		several = several || f.Host != conn.Host || f.Port != conn.Port
	}
	if !several {
		return nil
	}
	h := &hosts{lost: make(map[string]time.Time)}
	dial, prepare := conn.DialFunc, conn.AfterConnect
	conn.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		limit := h.patience(addr)
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			h.noteLost(addr)
			return nil, err
		}
		if limit > 0 {
			err = c.SetDeadline(time.Now().Add(limit)) // AfterConnect ends it
		}
		return c, err
	}
	conn.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		h.noteReady(c.Conn().RemoteAddr().String())
		if err := c.Conn().SetDeadline(time.Time{}); err != nil {
			return err
		}
		return prepare(ctx, c)
	}
	return h
}

// patience returns how long a connection to an address may take; 0: as long as any other.
func (h *hosts) patience(addr string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost, suspect := h.lost[addr]
	if suspect && (h.chosen != addr && h.since.After(lost) || time.Since(lost) < suspectFor) {
		return suspectPatience
	}
	return 0
}

// noteReady records a connection that is ready.
func (h *hosts) noteReady(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lost, addr)
	h.chosen, h.since = addr, time.Now()
}

// noteLost records that an address lost a connection or refused one.
func (h *hosts) noteLost(addr string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.lost[addr]; !known {
		h.lost[addr] = time.Now()
	}
}
