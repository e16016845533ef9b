package app_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/slow"
)

// linkLimit is the longest pause that a test accepts after a fault of a link. The promised limit is
// half of it; the margin is for loaded machines.
const linkLimit = 30 * time.Second

// bridge is a database with a workspace "w", a key for it, and a link to it that can break.
type bridge struct {
	dsn, through string
	proxy        *faultproxy.Proxy
	pool         *pgxpool.Pool // over the direct link
	key          string

	newest, dead atomic.Int64 // numbers of the proxy's connections
}

func newBridge(t *testing.T, dsn string) *bridge {
	t.Helper()
	slow.Test(t, "breaks connections")
	b := &bridge{dsn: dsn, pool: dbtest.Pool(t, dsn)}
	b.proxy, b.through = dbtest.Proxy(t, dsn)
	b.proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		b.newest.Store(max(b.newest.Load(), int64(c.Conn)))
		if int64(c.Conn) <= b.dead.Load() {
			return faultproxy.FreezeConn
		}
		return faultproxy.Forward
	})
	w, err := workspace.New(b.pool).Create(t.Context(), "w", "", "")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if _, b.key, err = apikey.New(b.pool, log).Create(t.Context(), apikey.Grant{Workspace: w.ID, Name: "test",
		Scopes: apikey.All}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return b
}

// halfOpen makes all current connections of the proxy half-open: neither side is notified. New
// connections work.
func (b *bridge) halfOpen() { b.dead.Store(b.newest.Load()) }

// replica starts a service on one of the two links and returns its address.
func (b *bridge) replica(t *testing.T, dsn string, environ ...string) string {
	t.Helper()
	opt := app.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	at, _, err := serve(t, opt, append([]string{"DATABASE_URL=" + dsn, "PARLEY_LISTEN=127.0.0.1:0"}, environ...)...)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// request calls the API of a replica.
func (b *bridge) request(ctx context.Context, method, url, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// answer is the stream of a turn.
type answer struct {
	text    string
	session string
	done    bool
	pause   time.Duration // the longest time without a frame
}

// send starts a turn and reads its stream to the end. at is called once, after some text.
func (b *bridge) send(t *testing.T, replica, command string, at func()) answer {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"command": command})
	return b.read(t, http.MethodPost, replica+"/api/v1/workspaces/w/messages", string(body), at)
}

// read reads a stream to its end.
func (b *bridge) read(t *testing.T, method, url, body string, at func()) (a answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*linkLimit)
	defer cancel()
	res, err := b.request(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("%s %s: %s", method, res.Status, text)
	}
	last := time.Now()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			a.done = a.done || lines.Text() == "event: done"
			continue
		}
		a.pause, last = max(a.pause, time.Since(last)), time.Now()
		var d struct {
			Text    string `json:"text"`
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		a.text += d.Text
		a.session = cmp.Or(a.session, d.Session)
		if len(a.text) >= 100 && at != nil {
			at()
			at = nil
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream broke: %v", err)
	}
	return a
}

// check compares an answer with that of the same command without a fault.
func (a answer) check(t *testing.T, want string) {
	t.Helper()
	if !a.done || a.text != want {
		t.Errorf("done %v, %d bytes of text, want %d", a.done, len(a.text), len(want))
	}
	if a.pause > linkLimit {
		t.Errorf("nothing came for %s", a.pause)
	}
	t.Logf("the longest pause was %s", a.pause)
}

// talk is the script of the agent's reply.
const talk = "@text 60 deltas of 12 bytes at 20/s"

func said() (text string) {
	for i := range 60 {
		n := strconv.Itoa(i)
		text += n + strings.Repeat(".", 11-len(n)) + " "
	}
	return text
}

// TestTurnAndReaderContinueOnAHalfOpenLink breaks all connections of the only replica in the middle
// of an answer.
func TestTurnAndReaderContinueOnAHalfOpenLink(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	b := newBridge(t, dbtest.DSN(t))
	b.send(t, b.replica(t, b.through), talk, b.halfOpen).check(t, said())
}

// TestTurnAndReaderContinueAfterACut resets all connections.
func TestTurnAndReaderContinueAfterACut(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	b := newBridge(t, dbtest.DSN(t))
	b.send(t, b.replica(t, b.through), talk, func() { b.proxy.Cut() }).check(t, said())
}

// TestReaderOfAnotherReplicasTurn reads on a replica whose link breaks a turn that another runs.
func TestReaderOfAnotherReplicasTurn(t *testing.T) {
	t.Parallel()
	b := newBridge(t, dbtest.DSN(t))
	b.replica(t, b.dsn)
	b.send(t, b.replica(t, b.through, "PARLEY_WORKERS=0"), talk, b.halfOpen).check(t, said())
}

// TestTurnOfACutOffReplicaIsTakenOver freezes the link of the replica that runs the turn for good.
func TestTurnOfACutOffReplicaIsTakenOver(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	b := newBridge(t, dbtest.DSN(t))
	reader := b.replica(t, b.dsn, "PARLEY_WORKERS=0")
	b.replica(t, b.through, "PARLEY_TURN_LEASE=3s")
	b.send(t, reader, talk, func() {
		b.proxy.Freeze()
		b.replica(t, b.dsn, "PARLEY_TURN_LEASE=3s")
	}).check(t, said())
	b.proxy.Thaw()
}

// TestHalfOpenReplicaTakesOverTheTurnsOfADeadOne gives the turn to a node that does not exist, at
// the moment in which the connections of the only replica die.
func TestHalfOpenReplicaTakesOverTheTurnsOfADeadOne(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	b := newBridge(t, dbtest.DSN(t))
	b.send(t, b.replica(t, b.through), talk, func() {
		b.halfOpen()
		if _, err := b.pool.Exec(t.Context(),
			`UPDATE turns SET node = 4711, lease_until = now() + interval '1 hour' WHERE state = 'running'`); err != nil {
			t.Error(err)
		}
	}).check(t, said())
}

// TestStoppedBackend stops, in the middle of an answer, the PostgreSQL process of the connection
// that was used last and will be used next.
func TestStoppedBackend(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	server := dbtest.NewServer(t)
	b := newBridge(t, server.DSN())
	b.send(t, b.replica(t, b.dsn), talk, func() {
		var pid int
		err := b.pool.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity
			WHERE application_name = 'parley' AND datname = current_database() AND state = 'idle' ORDER BY state_change DESC LIMIT 1`).Scan(&pid)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGSTOP)
		}
		if err != nil {
			t.Errorf("stop a backend: %v", err)
			return
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}).check(t, said())
}

// TestRequestIsAnsweredOnADeadLink sends a message while the link passes no bytes.
func TestRequestIsAnsweredOnADeadLink(t *testing.T) {
	t.Parallel()
	b := newBridge(t, dbtest.DSN(t))
	at := b.replica(t, b.through)
	b.send(t, at, "hello", nil)
	b.proxy.Freeze()
	began := time.Now()
	res, err := b.request(t.Context(), http.MethodPost, at+"/api/v1/workspaces/w/messages", `{"command":"hello"}`)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	took := time.Since(began)
	if res.StatusCode != http.StatusServiceUnavailable || took > linkLimit {
		t.Errorf("%s after %s", res.Status, took)
	}
	t.Logf("%s after %s", res.Status, took)
	b.proxy.Thaw()
}

// TestReadyNamesWhatIsLacking freezes the link of a service that was ready.
func TestReadyNamesWhatIsLacking(t *testing.T) {
	t.Parallel()
	b := newBridge(t, dbtest.DSN(t))
	at := b.replica(t, b.through)
	b.awaitReady(t, at, http.StatusOK, "")
	b.proxy.Freeze()
	b.awaitReady(t, at, http.StatusServiceUnavailable, "it cannot write to its database")
	b.proxy.Thaw()
	b.awaitReady(t, at, http.StatusOK, "")

	// The link delivers statements but no notifications, so the process is not ready anymore.
	b.proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if bytes.Contains(c.Data, []byte("LISTEN parley")) {
			return faultproxy.ResetAfter(0)
		}
		return faultproxy.Forward
	})
	if _, err := b.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'parley `+
		`listener' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	b.awaitReady(t, at, http.StatusServiceUnavailable, "it receives no notifications from the other replicas")
}

func (b *bridge) awaitReady(t *testing.T, at string, status int, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), linkLimit)
	defer cancel()
	for ; ; <-time.After(10 * time.Millisecond) {
		res, err := b.request(ctx, http.MethodGet, at+"/readyz", "")
		if err != nil {
			t.Fatalf("readyz never answered %d: %v", status, err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == status && strings.Contains(string(text), reason) {
			return
		}
	}
}

// TestStartOnABadLinkKeepsTrying resets the link once at each step of a start.
func TestStartOnABadLinkKeepsTrying(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	b := newBridge(t, dbtest.DSN(t))
	steps := []string{"server_version", "parley_probe_", "pg_try_advisory_lock", "events_partitions"}
	seen := make(map[string]bool)
	b.proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		for _, step := range steps {
			if c.Direction == faultproxy.ToServer && !seen[step] && bytes.Contains(c.Data, []byte(step)) {
				seen[step] = true
				return faultproxy.ResetAfter(0)
			}
		}
		return faultproxy.Forward
	})
	at := b.replica(t, b.through)
	b.proxy.OnChunk(nil)
	if len(seen) != len(steps) {
		t.Errorf("the link broke at %v", seen)
	}
	b.awaitReady(t, at, http.StatusOK, "")
}
