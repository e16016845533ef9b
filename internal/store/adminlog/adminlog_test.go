package adminlog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planted stands in every secret column.
const planted = "hunter2-hunter2-hunter2"

// sealed is an envelope of the vault with the planted secret. Its first bytes are the version, and
// the length and the id of a master key.
var sealed = fmt.Sprintf(`('\x01026b31'::bytea || convert_to(repeat('%s', 5), 'UTF8'))`, planted)

// logged has one change of each table per action. $1 is the workspace.
var logged = []struct{ object, insert, update, quiet, remove string }{
	{"api_keys", `INSERT INTO api_keys (id, workspace_id, name, secret_hash, last4, scopes) VALUES ('AAAAAAAA', $1, 'k', '` + planted +
		`', 'xxxx', '{chat}')`,
		`UPDATE api_keys SET scopes = '{admin}' WHERE workspace_id = $1`,
		`UPDATE api_keys SET last_used_at = now() WHERE workspace_id = $1`, `DELETE FROM api_keys WHERE workspace_id = $1`},
	{"credentials", `INSERT INTO credentials (workspace_id, name, value) VALUES ($1, 'STRIPE_KEY', ` + sealed + `)`,
		`UPDATE credentials SET value = value || 'x' WHERE workspace_id = $1`,
		`UPDATE credentials SET updated_at = 'epoch' WHERE workspace_id = $1`, `DELETE FROM credentials WHERE workspace_id = $1`},
	{"skills", `INSERT INTO skills (id, workspace_id, name, fold) VALUES (gen_random_uuid(), $1, 's', 's')`,
		`UPDATE skills SET status = 'archived' WHERE workspace_id = $1`, ``, ``},
	{"skill_versions", `INSERT INTO skill_versions (skill_id, version, workspace_id, description, document) SELECT id, 1, $1, 'd', ` +
		`repeat('x', 5000) FROM skills WHERE workspace_id = $1`,
		``, ``, `DELETE FROM skill_versions WHERE workspace_id = $1`},
	{"documents", `INSERT INTO documents (workspace_id, path, title, content) VALUES ($1, 'wiki/a.md', 't', '` + planted + `')`,
		`UPDATE documents SET title = 'u' WHERE workspace_id = $1`, ``, `DELETE FROM documents WHERE workspace_id = $1`},
	{"tool_rules", `INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, 'bash', 'ask')`,
		`UPDATE tool_rules SET rule = 'allow' WHERE workspace_id = $1`, ``, `DELETE FROM tool_rules WHERE workspace_id = $1`},
	{"allowlist",
		`INSERT INTO allowlist (id, workspace_id, tool, pattern, added_by) VALUES (gen_random_uuid(), $1, 'bash', 'bash(ls)', 'cli')`,
		`UPDATE allowlist SET revoked_at = now() WHERE workspace_id = $1`,
		`UPDATE allowlist SET hits = 9, last_hit_at = now() WHERE workspace_id = $1`, `DELETE FROM allowlist WHERE workspace_id = $1`},
	{"egress_policies", `INSERT INTO egress_policies (workspace_id) VALUES ($1)`,
		`UPDATE egress_policies SET public = true WHERE workspace_id = $1`, ``, `DELETE FROM egress_policies WHERE workspace_id = $1`},
	{"callback_secrets", `INSERT INTO callback_secrets (id, workspace_id, secret) VALUES (gen_random_uuid(), $1, ` + sealed + `)`,
		`UPDATE callback_secrets SET secret = secret || 'x' WHERE workspace_id = $1`, ``, `DELETE FROM callback_secrets WHERE workspace_id = $1`},
	{"workspaces", ``, `UPDATE workspaces SET max_running = 7 WHERE id = $1`, `UPDATE workspaces SET updated_at = 'epoch' WHERE id = $1`,
		`DELETE FROM workspaces WHERE id = $1`},
}

// created is the number of rows for a new workspace: its own, its agent and the agent's version.
const created = 3

type fixture struct {
	pool  *pgxpool.Pool
	log   *adminlog.Store
	space uuid.UUID
}

func start(t *testing.T) fixture {
	pool := dbtest.New(t)
	f := fixture{pool, adminlog.New(pool), uuid.Must(uuid.NewV7())}
	f.exec(t, `INSERT INTO vault_keys (id, proof) VALUES ('k1', `+sealed+`)`)
	f.exec(t, `INSERT INTO workspaces (id, slug, name) VALUES ($1, 'demo', 'Demo')`, f.space)
	return f
}

func (f fixture) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if strings.Contains(sql, "$1") && len(args) == 0 {
		args = []any{f.space}
	}
	if _, err := f.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (f fixture) list(t *testing.T, q adminlog.Query) adminlog.Page {
	t.Helper()
	q.Workspace = &f.space
	if q.Limit == 0 {
		q.Limit = 100
	}
	page, err := f.log.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestEveryChangeIsLogged changes each table with plain SQL, as psql would. Columns that only
// record use log nothing, secrets are not in the log, and it outlives the workspace.
func TestEveryChangeIsLogged(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, table := range logged {
		for _, step := range []struct{ action, sql string }{{"insert", table.insert}, {"", table.quiet}, {"update", table.update},
			{"delete", table.remove}} {
			if step.sql == "" {
				continue
			}
			before := len(f.list(t, adminlog.Query{Object: &table.object}).Data)
			f.exec(t, step.sql)
			after := f.list(t, adminlog.Query{Object: &table.object}).Data
			if step.action == "" {
				if len(after) != before {
					t.Errorf("%s: logged as %s", step.sql, after[0].After)
				}
				continue
			}
			if len(after) != before+1 {
				t.Fatalf("%s: %d rows of the log, of %d", step.sql, len(after), before+1)
			}
			e := after[0]
			if e.Action != step.action || e.ObjectID == "" || (e.Before == nil) != (e.Action == "insert") ||
				(e.After == nil) != (e.Action == "delete") ||
				e.Actor.Kind != "database" || e.Actor.Name == nil || string(e.Before) == string(e.After) {
				t.Errorf("%s: logged %+v, before %s, after %s", step.sql, e, e.Before, e.After)
			}
		}
	}
	var dump string
	if err := f.pool.QueryRow(t.Context(), `SELECT string_agg(l::text, ' ') FROM admin_log l`).Scan(&dump); err != nil {
		t.Fatal(err)
	}
	if hex := fmt.Sprintf("%x", planted); strings.Contains(dump, planted) || strings.Contains(dump, hex) {
		t.Errorf("the log has a secret: %s", dump)
	}
	for _, want := range []string{`[hidden]`, `[changed]`, `""bytes"": 5000`, `sha256`} {
		if !strings.Contains(dump, want) {
			t.Errorf("the log lacks %s: %s", want, dump)
		}
	}
	if strings.Contains(dump, strings.Repeat("x", 4097)) {
		t.Error("the log has a long text")
	}
}

// TestDeletionOfAWorkspaceIsOneRow checks that the parts of a deleted workspace are not listed one
// by one, and that its log stays.
func TestDeletionOfAWorkspaceIsOneRow(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, table := range logged {
		if table.insert != "" {
			f.exec(t, table.insert)
		}
	}
	before := len(f.list(t, adminlog.Query{}).Data)
	f.exec(t, `DELETE FROM workspaces WHERE id = $1`)
	after := f.list(t, adminlog.Query{}).Data
	if len(after) != before+1 || after[0].Object != "workspaces" || after[0].Action != "delete" {
		t.Errorf("%d rows after %d: %+v", len(after), before, after[0])
	}
}

func TestLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, sql := range []string{`UPDATE admin_log SET actor_name = 'x'`, `DELETE FROM admin_log`, `TRUNCATE admin_log`} {
		if _, err := f.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "never changed") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if n := len(f.list(t, adminlog.Query{}).Data); n != created {
		t.Errorf("%d rows", n)
	}
}

// TestActorsAreLogged makes a change as a key and one as the service itself.
func TestActorsAreLogged(t *testing.T) {
	t.Parallel()
	f := start(t)
	change := func(ctx context.Context) {
		if _, err := (replan.Pool{Pool: f.pool}).Exec(ctx, `UPDATE workspaces SET max_running = max_running - 1 WHERE id = $1`,
			f.space); err != nil {
			t.Fatal(err)
		}
	}
	change(actor.With(t.Context(), actor.Actor{Kind: actor.Key, ID: "7F3kQ2zB", Name: "backend", Address: "192.0.2.1", RequestID: "req_1"}))
	f.exec(t, `SET application_name = 'parley'; UPDATE workspaces SET max_running = 3; RESET application_name`)
	all := f.list(t, adminlog.Query{}).Data
	if got := all[0].Actor; got.Kind != "service" || got.ID != nil {
		t.Errorf("the service is logged as %+v", got)
	}
	by := f.list(t, adminlog.Query{Actor: new("7F3kQ2zB")}).Data
	if len(by) != 1 || *by[0].Actor.Name != "backend" || *by[0].Actor.Address != "192.0.2.1" || *by[0].Actor.RequestID != "req_1" {
		t.Errorf("the key is logged as %+v", by)
	}
}

// TestPagesOfTheLog reads the log in pages, and from a time on.
func TestPagesOfTheLog(t *testing.T) {
	t.Parallel()
	f := start(t)
	for n := range 6 {
		f.exec(t, fmt.Sprintf(`UPDATE workspaces SET max_running = %d WHERE id = $1`, n+1))
	}
	var ids []int64
	q := adminlog.Query{Limit: 3}
	for {
		page := f.list(t, q)
		for _, e := range page.Data {
			ids = append(ids, e.ID)
		}
		if !page.HasMore {
			break
		}
		q.Cursor = *page.NextCursor
	}
	if len(ids) != created+6 || ids[0] <= ids[6] {
		t.Errorf("ids %v", ids)
	}
	all := f.list(t, adminlog.Query{}).Data
	if got := f.list(t, adminlog.Query{Since: &all[2].At, Limit: 5}); len(got.Data) != 3 || got.HasMore {
		t.Errorf("since the third: %+v", got)
	}
	if got := f.list(t, adminlog.Query{Since: new(time.Now().Add(time.Hour))}); len(got.Data) != 0 {
		t.Errorf("of the future: %+v", got)
	}
	_, err := f.log.List(t.Context(), adminlog.Query{Cursor: "bA", Limit: 1})
	if got := fault.From(err); got == nil || got.Code != fault.InvalidCursor {
		t.Errorf("a foreign cursor: %v", err)
	}
}
