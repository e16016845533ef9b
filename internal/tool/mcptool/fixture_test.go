package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token is the value of CRM_TOKEN.
const token = "crm-token-4711-secret"

// world is a workspace with a session, and a server of tools, https://crm.example/mcp.
type world struct {
	pool      *pgxpool.Pool
	workspace uuid.UUID
	session   uuid.UUID
	runner    *toolenv.Runner
	store     *toolset.Store
}

// newWorld starts a world whose server is h.
func newWorld(t *testing.T, h http.Handler) *world {
	t.Helper()
	w := &world{pool: dbtest.New(t), session: uuid.New()}
	ws, err := workspace.New(w.pool).Create(t.Context(), "w", "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.workspace = ws.ID
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	secrets := vault.New(w.pool, keys)
	if err := secrets.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]string{"CRM_TOKEN": "crm.example", "OTHER": "other.example"} {
		r := vault.Registration{Name: name, Hosts: []string{host}, Value: vault.NewValue([]byte(token))}
		if name == "OTHER" {
			r.Value = vault.NewValue([]byte("another-secret-0815"))
		}
		if _, err := secrets.Register(t.Context(), w.workspace, r, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, w.session, w.workspace); err != nil {
		t.Fatal(err)
	}
	authority := egresstest.NewAuthority(t)
	guard, err := egress.New(egress.Config{Roots: authority.Roots(), Allow: []string{"crm.example:443=" + authority.Site(t, h,
		"crm.example")}})
	if err != nil {
		t.Fatal(err)
	}
	w.runner = toolenv.New(toolenv.Config{Pool: w.pool, Guard: guard, Vault: secrets, Files: filestore.New(w.pool, keys, filestore.Options{}),
		Folders: workdir.New(w.pool, workdir.Options{}), Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	w.store = toolset.NewStore(w.pool)
	return w
}

// crm is the entry of the server.
var crm = toolset.Entry{Name: "crm", URL: "https://crm.example/mcp", Headers: map[string]string{"Authorization": "Bearer ${CRM_TOKEN}"}}

// run opens a run of a new turn, which ends with the test.
func (w *world) run(t *testing.T) *toolenv.Run {
	t.Helper()
	turn := toolenv.Turn{Workspace: w.workspace, Session: w.session, Turn: uuid.Must(uuid.NewV7())}
	err := w.pool.QueryRow(t.Context(), `WITH s AS (UPDATE sessions SET epoch = epoch + 1 WHERE id = $1 RETURNING epoch)
		INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns) SELECT $2, $1, $3, 'completed', 60, 9 FROM s
		RETURNING (SELECT epoch FROM s)`, w.session, turn.Turn, w.workspace).Scan(&turn.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	run := w.runner.Open(turn)
	t.Cleanup(run.Close)
	return run
}

// add registers the server with the tools that it offers.
func (w *world) add(t *testing.T, e toolset.Entry) toolset.Server {
	t.Helper()
	run := w.run(t)
	defer run.Close()
	offers, protocol, err := mcptool.List(t.Context(), run, nil, e.Server())
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := w.store.Add(t.Context(), w.workspace, e, protocol, offers)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pin registers the server with one tool, without asking it.
func (w *world) pin(t *testing.T, e toolset.Entry, d toolset.Definition) {
	t.Helper()
	d.Schema = json.RawMessage(`{"type":"object"}`)
	if _, _, err := w.store.Add(t.Context(), w.workspace, e, "2025-11-25", []toolset.Offer{{OwnName: "find", Definition: d}}); err != nil {
		t.Fatal(err)
	}
}

// tools returns the usable tools in a run.
func (w *world) tools(t *testing.T, run *toolenv.Run) map[string]tool.Tool {
	t.Helper()
	servers, err := w.store.Usable(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]tool.Tool)
	record := mcptool.Record{Store: w.store, Workspace: w.workspace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, x := range mcptool.Tools(run, record, nil, servers) {
		list[x.Spec().Name] = x
	}
	return list
}

// call calls a tool; a refusal is a failed result, as for an agent.
func call(t *testing.T, ctx context.Context, x tool.Tool, input string) tool.Result {
	t.Helper()
	if x == nil {
		t.Fatal("the tool is not usable")
	}
	res, err := x.Call(ctx, tool.Call{ID: "toolu_1", Tool: x.Spec().Name, Input: json.RawMessage(input)})
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return tool.Reject(string(refused))
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// served is a real server with tools.
func served(add func(*mcp.Server)) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	add(s)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return s
	}, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})
}
