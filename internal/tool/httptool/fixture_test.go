package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/httptool"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token is the value of ERP_TOKEN.
const token = "erp-token-4711-secret"

// world is a workspace with a session, and an HTTP API, https://erp.example/v1.
type world struct {
	pool      *pgxpool.Pool
	workspace uuid.UUID
	session   uuid.UUID
	runner    *toolenv.Runner
	store     *toolset.Store
	callbacks *callback.Store
	secret    string // which signs
}

// newWorld starts a world whose API is h.
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
	for name, r := range map[string]vault.Registration{
		"ERP_TOKEN": {Hosts: []string{"erp.example"}, Value: vault.NewValue([]byte(token))},
		"OTHER":     {Hosts: []string{"other.example"}, Value: vault.NewValue([]byte("another-secret-0815"))},
	} {
		r.Name = name
		if _, err := secrets.Register(t.Context(), w.workspace, r, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, w.session, w.workspace); err != nil {
		t.Fatal(err)
	}
	authority := egresstest.NewAuthority(t)
	guard, err := egress.New(egress.Config{Roots: authority.Roots(), Allow: []string{"erp.example:443=" + authority.Site(t, h,
		"erp.example")}})
	if err != nil {
		t.Fatal(err)
	}
	w.runner = toolenv.New(toolenv.Config{Pool: w.pool, Guard: guard, Vault: secrets, Files: filestore.New(w.pool, keys, filestore.Options{}),
		Folders: workdir.New(w.pool, workdir.Options{}), Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	w.store, w.callbacks = toolset.NewStore(w.pool), callback.NewStore(w.pool, keys, guard)
	if w.secret, err = w.callbacks.Secret(t.Context(), w.workspace); err != nil {
		t.Fatal(err)
	}
	return w
}

// erp is the entry of the API.
var erp = toolset.Entry{Name: "erp", URL: "https://erp.example/v1", Headers: map[string]string{"Authorization": "Bearer ${ERP_TOKEN}"}}

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

// define returns a tool of the API.
func define(name, method, path, properties string, required ...string) toolset.HTTPTool {
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": json.RawMessage(properties), "required": append([]string{},
		required...)})
	return toolset.HTTPTool{Name: name, Definition: toolset.Definition{Description: name, Schema: schema,
		HTTP: &toolset.Request{Method: method, Path: path}}}
}

// tools registers the API with tools, and returns them in a run, by their own names.
func (w *world) tools(t *testing.T, e toolset.Entry, defined ...toolset.HTTPTool) map[string]tool.Tool {
	t.Helper()
	if _, err := w.store.AddHTTP(t.Context(), w.workspace, e, defined); err != nil {
		t.Fatal(err)
	}
	servers, err := w.store.Usable(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	record := mcptool.Record{Store: w.store, Workspace: w.workspace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	all, err := httptool.Tools(w.run(t), record, httptool.Sender{Sign: w.callbacks.SignRequest, Base: "https://parley.example"}, servers)
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]tool.Tool)
	for _, x := range all {
		for _, s := range servers {
			for _, d := range s.Tools {
				if d.Name == x.Spec().Name {
					list[d.OwnName] = x
				}
			}
		}
	}
	return list
}

// call calls a tool; a refusal is a failed result, as for an agent.
func (w *world) call(t *testing.T, ctx context.Context, x tool.Tool, id, input string) (tool.Result, error) {
	t.Helper()
	if x == nil {
		t.Fatal("the tool is not usable")
	}
	if wrong := tool.WrongInput(x, json.RawMessage(input)); wrong != "" {
		return tool.Reject(wrong), nil
	}
	res, err := x.Call(ctx, tool.Call{ID: id, Tool: x.Spec().Name, Workspace: w.workspace, Input: json.RawMessage(input)})
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return tool.Reject(string(refused)), nil
	}
	return res, err
}

// must calls a tool.
func (w *world) must(t *testing.T, x tool.Tool, input string) tool.Result {
	t.Helper()
	res, err := w.call(t, t.Context(), x, "call_1", input)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
