package toolenv_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/remote"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a workspace with a session, and a TLS server, example.com, that echoes its requests.
type world struct {
	pool      *pgxpool.Pool
	workspace uuid.UUID
	session   uuid.UUID
	vault     *vault.Store
	files     *filestore.Store
	guard     *egress.Guard
	box       *sandbox.Sandbox // nil before contained
	remote    *remote.Client   // nil before onRunner
	heard     chan string      // the Authorization of each request
}

func newWorld(t *testing.T) *world {
	t.Helper()
	slow.Test(t, "runs commands",
		"TestPolicy", "TestPlaceholdersBelongToATurn")
	w := &world{pool: dbtest.New(t), session: uuid.New(), heard: make(chan string, 100)}
	ws, err := workspace.New(w.pool).Create(t.Context(), "w", "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.workspace = ws.ID
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	w.vault, w.files = vault.New(w.pool, keys), filestore.New(w.pool, keys, filestore.Options{})
	if err := w.vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, w.session, w.workspace); err != nil {
		t.Fatal(err)
	}
	up := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.heard <- r.Header.Get("Authorization")
		fmt.Fprintf(rw, "you sent %s", r.Header.Get("Authorization"))
		if strings.Contains(r.URL.Path, "secret") {
			fmt.Fprintf(rw, " to %s", r.URL.Path)
		}
		fmt.Fprintln(rw)
	}))
	t.Cleanup(up.Close)
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	_, port, _ := net.SplitHostPort(up.Listener.Addr().String())
	w.guard, err = egress.New(egress.Config{Roots: roots, Allow: []string{"example.com:443=127.0.0.1:" + port}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// contained gives the world a sandbox, or skips the test.
func (w *world) contained(t *testing.T) *world {
	t.Helper()
	cfg := sandbox.Config{Transparent: true}
	if os.Getuid() == 0 {
		cfg.Users = sandbox.UserRange{First: 64001, Last: 64064}
	}
	box, err := sandbox.Open(t.Context(), cfg)
	if err != nil {
		need.Missing(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	w.box = box
	return w
}

// replica is the runner of one process.
func (w *world) replica(t *testing.T) *toolenv.Runner {
	t.Helper()
	return w.replicaIn(t, t.TempDir())
}

func (w *world) replicaIn(t *testing.T, dir string) *toolenv.Runner {
	t.Helper()
	opt := workdir.Options{}
	if w.box != nil {
		opt.Give = w.box.Give
	}
	return toolenv.New(toolenv.Config{Pool: w.pool, Guard: w.guard, Vault: w.vault, Files: w.files, Folders: workdir.New(w.pool, opt),
		Sandbox: w.box, Remote: w.remote,
		Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// turn creates the session's next turn.
func (w *world) turn(t *testing.T, credentials ...string) toolenv.Turn {
	t.Helper()
	turn := toolenv.Turn{Workspace: w.workspace, Session: w.session, Turn: uuid.Must(uuid.NewV7()), Credentials: credentials}
	err := w.pool.QueryRow(t.Context(), `WITH s AS (UPDATE sessions SET epoch = epoch + 1 WHERE id = $1 RETURNING epoch)
		INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns) SELECT $2, $1, $3, 'completed', 60, 9 FROM s
		RETURNING (SELECT epoch FROM s)`, w.session, turn.Turn, w.workspace).Scan(&turn.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// begin opens a run that is closed when the test ends.
func (w *world) begin(t *testing.T, turn toolenv.Turn) *toolenv.Run {
	t.Helper()
	run := w.replica(t).Open(turn)
	t.Cleanup(run.Close)
	return run
}

// bash runs a command and returns its output, its exit status unless it is 0, and why it was
// killed.
func bash(t *testing.T, run *toolenv.Run, command string) string {
	t.Helper()
	var out bytes.Buffer
	exit, killed, err := run.Bash(t.Context(), tool.Call{ID: "c"}, command, 20*time.Second, &out)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	if exit != 0 || killed != "" {
		fmt.Fprintf(&out, "[%d %s]", exit, killed)
	}
	return out.String()
}

// refused returns the error that a tool reports to the model, or "" after a success.
func refused(t *testing.T, err error) string {
	t.Helper()
	refusal, ok := errors.AsType[tool.Refusal](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	return string(refusal)
}

// fetchAttachment makes a request, with a credential if one is named, and returns the response.
func fetchAttachment(t *testing.T, run *toolenv.Run, url, credential string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if credential != "" {
		stands, err := run.Placeholder(t.Context(), credential)
		if why := refused(t, err); why != "" {
			return why
		}
		req.Header.Set("Authorization", "Bearer "+stands)
	}
	res, err := run.Do(tool.Call{ID: "c"}, req)
	if why := refused(t, err); why != "" {
		return why
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

// register registers a credential for example.com.
func (w *world) register(t *testing.T, name, value string) {
	t.Helper()
	r := vault.Registration{Name: name, Hosts: []string{"example.com"}}
	if value != "" {
		r.Value = vault.NewValue([]byte(value))
	}
	if _, err := w.vault.Register(t.Context(), w.workspace, r, "test"); err != nil {
		t.Fatal(err)
	}
}
