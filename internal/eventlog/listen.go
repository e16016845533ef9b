package eventlog

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/outage"
)

// nodeClass is the first half of the advisory locks that prove that nodes live; the function
// nodes_alive in the database uses the same number.
const nodeClass = 20561

// connectTimeout limits opening a connection outside the pool, including its first statements.
const connectTimeout = 5 * time.Second

// connectNode opens a connection outside the pool, runs a statement and takes the node's lock.
func (l *Log) connectNode(ctx context.Context, name, first string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	config := l.opt.Listen.Copy()
	config.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	crashpoint.Hit("listen.after_connect_before_listen")
	if _, err = conn.Exec(ctx, first); err == nil {
		err = l.lockNode(ctx, conn)
	}
	if err != nil {
		hangUp(conn)
		return nil, fmt.Errorf("prepare the connection: %w", err)
	}
	return conn, nil
}

// hangUp closes a connection without waiting long for the server.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// lockNode takes the advisory lock that proves to the other replicas that this process lives. The
// lock is shared and held on two connections: one of them may break.
func (l *Log) lockNode(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1, $2)`, nodeClass, l.node); err != nil {
		return fmt.Errorf("take the node's lock: %w", err)
	}
	return nil
}

// listener holds the process's only LISTEN connection.
type listener struct {
	log       *Log
	outage    *outage.Log
	connected atomic.Bool
	heard     atomic.Int64 // last proof that the connection works, in Unix nanoseconds

	mu      sync.Mutex
	watches map[uuid.UUID]map[chan struct{}]struct{}
}

func newListener(l *Log) *listener {
	return &listener{log: l, outage: outage.New(l.opt.Log, "listen to the other replicas"),
		watches: make(map[uuid.UUID]map[chan struct{}]struct{})}
}

// IsListening reports whether the connection for notifications of other replicas works: it is open
// and has delivered data, if only the answer to a ping, within three times Options.Ping.
func (l *Log) IsListening() bool {
	n := l.listener
	return n.connected.Load() && time.Since(time.Unix(0, n.heard.Load())) < 3*l.opt.Ping
}

// Watch returns a channel that holds a value after another replica has, or may have, sent a
// notification about a session. Call stop when done.
func (l *Log) Watch(id uuid.UUID) (news <-chan struct{}, stop func()) {
	return l.listener.watchSession(id)
}

// Nudge makes the other replicas re-read a session although no event was written.
func (l *Log) Nudge(id uuid.UUID) { l.notifier.addSession(id) }

func (l *listener) watchSession(id uuid.UUID) (news <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches[id] == nil {
		l.watches[id] = make(map[chan struct{}]struct{})
	}
	l.watches[id][c] = struct{}{}
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watches[id], c)
		if len(l.watches[id]) == 0 {
			delete(l.watches, id)
		}
	}
}

func (l *listener) run(ctx context.Context) error {
	delay := 50 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := l.forwardNotifications(ctx)
		l.connected.Store(false)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > 5*time.Second {
			delay = 50 * time.Millisecond
		}
		l.outage.Note(ctx, err)
		sleepContext(ctx, delay)
		delay = min(2*delay, time.Second)
	}
	return nil
}

// forwardNotifications connects, takes the node's lock, wakes all watchers and then forwards
// notifications until the connection breaks.
func (l *listener) forwardNotifications(ctx context.Context) error {
	conn, err := l.log.connectNode(ctx, "parley listener", "LISTEN "+channel)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if err := l.announceNode(ctx, conn); err != nil { // PostgreSQL's queue may be full; the others look for new nodes anyway
		if conn.IsClosed() {
			return err
		}
		l.log.opt.Log.WarnContext(ctx, "greet the other replicas", "err", err)
	}
	l.heard.Store(time.Now().UnixNano())
	l.connected.Store(true)
	l.outage.Note(ctx, nil)
	l.log.tailer.markAll() // notifications sent meanwhile were lost
	l.wakeWatchers(nil)
	for {
		wait, cancel := context.WithTimeout(ctx, l.log.opt.Ping)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			l.heard.Store(time.Now().UnixNano())
			ids, foreign := parsePayload(n.Payload, l.log.node)
			if foreign {
				l.log.notifier.alone.Store(0)
			}
			if len(ids) > 0 {
				l.log.tailer.markSessions(ids...)
				l.wakeWatchers(ids)
			}
		case ctx.Err() != nil:
			return nil
		case wait.Err() == nil || conn.IsClosed():
			return fmt.Errorf("wait for notifications: %w", err)
		default:
			if err := l.pingServer(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// announceNode announces this node to the other nodes, which then notify it.
func (l *listener) announceNode(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.log.opt.Ping)
	defer cancel()
	_, err := conn.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, strconv.Itoa(int(l.log.node)))
	return err
}

// pingServer detects a dead link that reports no error. The pool uses the same link.
func (l *listener) pingServer(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.log.opt.Ping)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		l.log.pool.Reset()
		return fmt.Errorf("ping: %w", err)
	}
	l.heard.Store(time.Now().UnixNano())
	return nil
}

// wakeWatchers wakes the watchers of the given sessions, or of all sessions if ids is nil.
func (l *listener) wakeWatchers(ids []uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ids == nil {
		for _, chans := range l.watches {
			for c := range chans {
				wakeUp(c)
			}
		}
		return
	}
	for _, id := range ids {
		for c := range l.watches[id] {
			wakeUp(c)
		}
	}
}
