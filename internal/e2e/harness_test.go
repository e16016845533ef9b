// Package e2e_test runs the real binary as real processes and does to them what
// happens to processes: kill -9, SIGSTOP, SIGTERM, lost connections.
package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/vault"
)

// binary is this test itself: with PARLEY_E2E set it is parley, race detector and
// all.
var binary = os.Args[0]

func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_E2E") != "" {
		os.Unsetenv("PARLEY_E2E")
		os.Exit(cli.Main())
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// vaultKey is the master key of every world.
var vaultKey = vault.GenerateKey()

// world is a database with a workspace "w" and a key for it.
type world struct {
	dsn  string
	pool *pgxpool.Pool
	key  string
	wrap []string // what servers are started by; nil: nothing
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, dbtest.DSN(t))
}

func newWorldOn(t *testing.T, dsn string) *world {
	t.Helper()
	w := &world{dsn: dsn}
	w.pool = dbtest.Pool(t, w.dsn)
	w.parley(t, "workspace", "create", "w", "--messages-per-minute", "0", "--calls-per-minute", "0", "--open-streams", "0")
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "test", "--scope", "chat", "--scope", "sessions:read")
	return w
}

// parley runs an administrator's command and returns its output.
func (w *world) parley(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(environ(), "DATABASE_URL="+w.dsn, "PARLEY_VAULT_KEY="+vaultKey)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String())
}

// environ is ours without what would configure Parley.
func environ() []string {
	env := []string{"PARLEY_E2E=1"}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PARLEY_") && !strings.HasPrefix(e, "OPENAI_") && !strings.HasPrefix(e, "ANTHROPIC_") && !strings.HasPrefix(e, "DATABASE_URL=") {
			env = append(env, e)
		}
	}
	return env
}

// server is one replica: a process.
type server struct {
	cmd  *exec.Cmd
	url  string
	gone chan struct{}
}

// serve starts a replica and waits until it is ready. env and flags come on top.
func (w *world) serve(t *testing.T, env []string, flags ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	return w.serveAt(t, addr, env, flags...)
}

// serveAt is serve on a given address.
func (w *world) serveAt(t *testing.T, addr string, env []string, flags ...string) *server {
	t.Helper()
	s := &server{url: "http://" + addr, gone: make(chan struct{})}
	line := append(append(w.wrap, binary, "serve", "--listen", addr), flags...)
	s.cmd = exec.Command(line[0], line[1:]...)
	s.cmd.Env = append(append(environ(), "DATABASE_URL="+w.dsn, "PARLEY_DURABILITY=off", "PARLEY_VAULT_KEY="+vaultKey), env...)
	s.cmd.Stdout, s.cmd.Stderr = t.Output(), t.Output()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.gone)
	}()
	t.Cleanup(func() {
		s.signal(syscall.SIGCONT)
		s.signal(syscall.SIGKILL)
		<-s.gone
	})
	await(t, "the server is ready", func() bool {
		select {
		case <-s.gone:
			t.Fatal("the server ended while it started")
		default:
		}
		res, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return s
}

func (s *server) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// frame is what a reader keeps of a stream. Of done only the id counts: it says
// whether its stream was resumed.
type frame struct {
	ID    string
	Event string
	Data  string
}

var errDropped = errors.New("the stream ended without done")

// stream reads one connection until done, until it breaks, or until see says stop.
func (w *world) stream(ctx context.Context, req *http.Request, see func(frame) bool) error {
	req = req.WithContext(ctx)
	req.Header.Set("Authorization", "Bearer "+w.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: %s", res.Status, body)
	}
	r := sse.NewReader(res.Body)
	for {
		f, err := r.Next()
		if err != nil {
			return errors.Join(errDropped, err)
		}
		got := frame{f.ID, f.Event, string(f.Data)}
		if got.Event == "done" {
			got.Data = ""
		}
		if !see(got) || got.Event == "done" {
			return nil
		}
	}
}

func (w *world) messages(s *server, body any) *http.Request {
	data, _ := json.Marshal(body)
	req, _ := http.NewRequest(http.MethodPost, s.url+"/api/v1/workspaces/w/messages", bytes.NewReader(data))
	req.Header.Set("Content-Type", "application/json")
	return req
}

func (w *world) events(s *server, session, cursor string) *http.Request {
	// A turn may end while its reader is away: replay=all gives the tail even then.
	req, _ := http.NewRequest(http.MethodGet, s.url+"/api/v1/workspaces/w/sessions/"+session+"/events?replay=all", nil)
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	return req
}

// start sends a message and lets go of its stream after the first frame.
func (w *world) start(t *testing.T, s *server, command string) (session string, open frame) {
	t.Helper()
	err := w.stream(t.Context(), w.messages(s, map[string]any{"command": command}), func(f frame) bool {
		open = f
		return false
	})
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	var body struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(open.Data), &body); err != nil || open.Event != "open" {
		t.Fatalf("first frame %+v: %v", open, err)
	}
	return body.SessionID, open
}

// follow reads a turn to its end, through whatever breaks: after every drop it
// reconnects with its cursor to the next of the servers.
func (w *world) follow(ctx context.Context, session, cursor string, see func(frame), servers ...*server) ([]frame, error) {
	var all []frame
	for i := 0; ; i++ {
		done := false
		err := w.stream(ctx, w.events(servers[i%len(servers)], session, cursor), func(f frame) bool {
			if f.Event == "open" { // synthetic: no row of its own
				return true
			}
			all, cursor, done = append(all, f), f.ID, f.Event == "done"
			if see != nil {
				see(f)
			}
			return true
		})
		if done {
			return all, nil
		}
		if ctx.Err() != nil {
			return all, fmt.Errorf("after %d frames: %w (%v)", len(all), ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// table is what the log holds of a session's public events after its open row.
func (w *world) table(t *testing.T, session string) []frame {
	t.Helper()
	rows, err := w.pool.Query(t.Context(), `SELECT seq::text, kind, CASE WHEN kind = 'done' THEN '' ELSE data::text END FROM events
		WHERE session_id = $1 AND kind NOT IN ('open', 'message', 'started', 'reply', 'tool_output', 'reference') ORDER BY events.seq`, session)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []frame
	for rows.Next() {
		var f frame
		if err := rows.Scan(&f.ID, &f.Event, &f.Data); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return all
}

func text(frames []frame) string {
	var b strings.Builder
	for _, f := range frames {
		var body struct {
			Text string `json:"text"`
		}
		if f.Event == "text" && json.Unmarshal([]byte(f.Data), &body) == nil {
			b.WriteString(body.Text)
		}
	}
	return b.String()
}

// answer is the stored message of the agent.
func (w *world) answer(t *testing.T, session string) (content, status string) {
	t.Helper()
	err := w.pool.QueryRow(t.Context(), `SELECT coalesce(content, ''), status FROM messages WHERE session_id = $1 AND role = 'assistant'`, session).Scan(&content, &status)
	if err != nil {
		t.Fatal(err)
	}
	return content, status
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		case <-tick.C:
		}
	}
}
