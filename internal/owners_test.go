package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// owners names the only package that may write each table, below internal.
var owners = map[string]string{
	"sessions": "session", "turns": "session", "messages": "session", "approvals": "session",
	"tool_replies": "session", "erasures": "session", "usage_days": "session", "usage_summed": "session", "turn_setups": "session",
	"idempotency_keys": "session", "idempotent_answers": "session",
	"river_job": "session", // in addition to River itself
	"events":    "eventlog", "lineage": "eventlog",
	"workspaces": "store/workspace", "server_state": "store/workspace", "agents": "store/agent", "agent_versions": "store/agent",
	"api_keys": "store/apikey",
	"budgets":  "store/budget", "budget_use": "store/budget",
	"users": "store/account", "members": "store/account", "web_sessions": "store/account", "login_links": "store/account",
	"oidc_states": "store/account", "session_views": "store/account",
	"allowlist": "store/permission", "tool_rules": "store/permission",
	"callbacks": "store/callback", "callback_attempts": "store/callback", "callback_deliveries": "store/callback",
	"callback_secrets": "store/callback",
	"chain_links":      "store/chain", "chain_notices": "store/chain", "chain_keys": "store/chain",
	"credentials": "store/vault", "credential_uses": "store/vault", "vault_keys": "store/vault",
	"documents": "store/wiki", "document_sections": "store/wiki", "vector_index": "store/wiki",
	"model_providers": "store/modelset",
	"tool_servers":    "store/toolset", "tool_definitions": "store/toolset", "tool_grants": "store/toolset",
	"tool_clients": "store/toolset", "tool_links": "store/toolset",
	"files": "store/filestore", "file_chunks": "store/filestore", "file_uploads": "store/filestore", "file_texts": "store/filestore",
	"turn_files":   "store/filestore",
	"open_streams": "store/ratelimit", "rate_limits": "store/ratelimit",
	"skills": "store/skill", "skill_changes": "store/skill", "skill_versions": "store/skill",
	"egress_policies": "toolenv", "egress_requests": "toolenv",
	"workdirs": "toolenv/workdir", "work_blobs": "toolenv/workdir", "work_chunks": "toolenv/workdir", "work_files": "toolenv/workdir",
}

// joint are the writes of a package to a table of another one, because a statement of its own would
// make every message slower. The package may write nothing else in that table.
var joint = map[string]string{
	// The session's row has the newest position of its log, and its lock orders the log's rows.
	"eventlog sessions": "UPDATE sessions s SET last_seq = h.seq, last_ord = h.ord FROM",
	// The statement that changes a turn stores the events that record the change.
	"session events": "INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data) SELECT",
}

var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	sqlWrite   = regexp.MustCompile(`\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?([a-z]\w+)\b`)
)

// TestTablesHaveOneWriter finds the queries and the SQL in Go that write a table, and the packages
// that call them.
func TestTablesHaveOneWriter(t *testing.T) {
	t.Parallel()
	queries := writingQueries(t)
	written := make(map[string]bool)
	check := func(at, pkg string, writes []write) {
		for _, w := range writes {
			written[w.table] = true
			if owner := owners[w.table]; owner == "" {
				t.Errorf("%s writes %s, a table without an owner", at, w.table)
			} else if only := joint[pkg+" "+w.table]; owner != pkg && (only == "" || !strings.HasPrefix(w.sql, only)) {
				t.Errorf("%s writes %s: only %s may", at, w.table, owner)
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "testing" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok {
					check(files.Position(n.Pos()).String(), pkg, queries[f.Sel.Name])
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					check(files.Position(n.Pos()).String(), pkg, writesOf(n.Value))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for table := range owners {
		if !written[table] {
			t.Errorf("no code writes %s: remove it from the list", table)
		}
	}
}

// write is the part of a statement that writes a table.
type write struct {
	table string
	sql   string // from INSERT, UPDATE or DELETE on, with single spaces
}

// writingQueries returns what each query of queries/ writes, by the query's name.
func writingQueries(t *testing.T) map[string][]write {
	t.Helper()
	files, err := filepath.Glob("../queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	all := make(map[string][]write)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "-- name: ")[1:] {
			query, body, _ := strings.Cut(part, " ")
			if writes := writesOf(body); len(writes) > 0 {
				all[query] = writes
			}
		}
	}
	return all
}

// writesOf returns what SQL inserts, updates and deletes.
func writesOf(sql string) (writes []write) {
	sql = strings.Join(strings.Fields(sqlComment.ReplaceAllString(sql, "")), " ")
	for _, m := range sqlWrite.FindAllStringSubmatchIndex(sql, -1) {
		if table := sql[m[2]:m[3]]; table != "set" && table != "of" && table != "skip" {
			writes = append(writes, write{table, sql[m[0]:]})
		}
	}
	return writes
}
