package eventlog

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/outage"
)

// channel is the channel that all replicas share.
const channel = "parley"

// gather is how long hints wait for others after busySessions or more had news at once. With fewer,
// hints are sent at once.
const (
	gather       = 3 * time.Millisecond
	busySessions = 16
)

// maxPayload keeps a notification below PostgreSQL's 8000 bytes.
const maxPayload = 7900

// Publish passes committed events to the readers of this process and sends the other replicas a
// hint. Call it after the commit.
func (l *Log) Publish(id uuid.UUID, evs []event.Event) {
	l.topics.publishEvents(id, evs, -1)
	l.notifier.addSession(id)
}

// notifier sends hints after the commit, never inside it: NOTIFY takes a lock on the whole database
// until its transaction ends. While one hint is being sent, and briefly afterwards under load, the
// next ones gather.
type notifier struct {
	log     *Log
	outage  *outage.Log
	mu      sync.Mutex
	pending map[uuid.UUID]struct{}
	hints   map[hint]struct{}
	wake    chan struct{}

	alone atomic.Int64 // the time until which no other node listens, in Unix nanoseconds
}

// aloneFor is how long a check of the nodes is valid. A new node usually greets earlier; a node of
// a release that does not greet finds commits by its re-check until the next check.
const aloneFor = 2 * time.Second

// NodesSeen records which nodes are alive now. While this is the only one, it announces no events:
// a notification costs about as much as the commit that it announces. A node that starts later
// greets when it listens; its once-a-second re-check finds rows committed before that.
func (l *Log) NodesSeen(nodes []int32) {
	until := int64(0)
	if len(nodes) == 1 && nodes[0] == l.node {
		until = time.Now().Add(aloneFor).UnixNano()
	}
	l.notifier.alone.Store(until)
}

// hint is a notification for listeners outside this package.
type hint struct{ topic, payload string }

// Hint notifies the listeners of a topic of the current schema, as River names its channels. It
// returns at once; equal hints in the queue are sent once. Call it after the commit that it
// announces.
func (l *Log) Hint(topic, payload string) {
	n := l.notifier
	n.mu.Lock()
	n.hints[hint{topic, payload}] = struct{}{}
	n.mu.Unlock()
	wakeUp(n.wake)
}

func newNotifier(l *Log) *notifier {
	return &notifier{log: l, outage: outage.New(l.opt.Log, "notify the other replicas"),
		pending: make(map[uuid.UUID]struct{}), hints: make(map[hint]struct{}), wake: make(chan struct{}, 1)}
}

func (n *notifier) addSession(id uuid.UUID) {
	if time.Now().UnixNano() < n.alone.Load() {
		return
	}
	n.mu.Lock()
	n.pending[id] = struct{}{}
	n.mu.Unlock()
	wakeUp(n.wake)
}

func (n *notifier) run(ctx context.Context) error {
	var conn *pgx.Conn
	defer func() { n.dropConnection(&conn) }()
	_ = n.ensureConnected(ctx, &conn) // before the first hint, which dials again and reports
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		}
		n.mu.Lock()
		ids, hints := n.pending, n.hints
		n.pending, n.hints = make(map[uuid.UUID]struct{}, len(ids)), make(map[hint]struct{})
		n.mu.Unlock()
		if len(ids) == 0 && len(hints) == 0 {
			continue
		}
		n.outage.Note(ctx, n.sendHints(ctx, &conn, ids, hints)) // a lost hint: the re-check of every replica finds the rows
		if len(ids) >= busySessions {
			sleepContext(ctx, gather)
		}
	}
}

// sendHints notifies on its own connection, which does not wait for the disk: a hint needs no
// durability. A stalled link costs one Options.Ping.
func (n *notifier) sendHints(ctx context.Context, conn **pgx.Conn, ids map[uuid.UUID]struct{}, hints map[hint]struct{}) error {
	if err := n.ensureConnected(ctx, conn); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.log.opt.Ping)
	defer cancel()
	for h := range hints {
		if _, err := (*conn).Exec(ctx, `SELECT pg_notify(current_schema() || '.' || $1, $2)`, h.topic, h.payload); err != nil {
			n.dropConnection(conn)
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	for _, p := range packPayloads(n.log.node, ids) {
		if _, err := (*conn).Exec(ctx, `SELECT pg_notify($1, $2)`, channel, p); err != nil {
			n.dropConnection(conn)
			return err
		}
	}
	return nil
}

// ensureConnected connects unless a connection is open. It does not wait for a place in the pool.
func (n *notifier) ensureConnected(ctx context.Context, conn **pgx.Conn) (err error) {
	if *conn == nil {
		*conn, err = n.log.connectNode(ctx, "parley notifier", `SET synchronous_commit = off`)
	}
	return err
}

func (n *notifier) dropConnection(conn **pgx.Conn) {
	if *conn != nil {
		hangUp(*conn)
		*conn = nil
	}
}

// packPayloads packs "node id id …" into as few notifications as fit.
func packPayloads(node int32, ids map[uuid.UUID]struct{}) []string {
	var out []string
	var b strings.Builder
	head := strconv.Itoa(int(node))
	b.WriteString(head)
	for id := range ids {
		if b.Len()+24 > maxPayload {
			out = append(out, b.String())
			b.Reset()
			b.WriteString(head)
		}
		b.WriteByte(' ')
		b.WriteString(base64.RawURLEncoding.EncodeToString(id[:]))
	}
	return append(out, b.String())
}

// parsePayload parses a notification made by packPayloads. It skips this node's own notifications;
// foreign reports that the payload is from another node. It ignores unknown fields: a newer release
// may send more.
func parsePayload(p string, own int32) (ids []uuid.UUID, foreign bool) {
	head, rest, _ := strings.Cut(p, " ")
	if n, err := strconv.ParseInt(head, 10, 32); err == nil && int32(n) == own {
		return nil, false
	}
	for f := range strings.FieldsSeq(rest) {
		var id uuid.UUID
		if k, err := base64.RawURLEncoding.Decode(id[:], []byte(f)); err == nil && k == len(id) && len(f) == 22 {
			ids = append(ids, id)
		}
	}
	return ids, true
}
