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
	"sessions": "session", "turns": "session", "messages": "session", "events": "session", "approvals": "session",
	"erasures": "session", "lineage": "session", "idempotency_keys": "session", "idempotent_answers": "session",
	"river_job":  "session", // besides River itself
	"workspaces": "store/workspace",
	"api_keys":   "store/apikey",
	"allowlist":  "store/permission", "tool_rules": "store/permission",
	"callbacks": "store/callback", "callback_attempts": "store/callback", "callback_deliveries": "store/callback", "callback_secrets": "store/callback",
	"credentials": "store/vault", "credential_uses": "store/vault", "vault_keys": "store/vault",
	"documents": "store/wiki",
	"files":     "store/filestore", "file_chunks": "store/filestore", "file_uploads": "store/filestore", "turn_files": "store/filestore",
	"open_streams": "store/ratelimit", "rate_limits": "store/ratelimit",
	"skills": "store/skill", "skill_changes": "store/skill", "skill_versions": "store/skill",
	"egress_policies": "toolenv", "egress_requests": "toolenv",
	"workdirs": "toolenv/workdir", "work_blobs": "toolenv/workdir", "work_chunks": "toolenv/workdir", "work_files": "toolenv/workdir",
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
	check := func(at, pkg string, tables []string) {
		for _, table := range tables {
			written[table] = true
			if owner := owners[table]; owner == "" {
				t.Errorf("%s writes %s, which has no owner", at, table)
			} else if owner != pkg {
				t.Errorf("%s writes %s: only %s may", at, table, owner)
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
					check(files.Position(n.Pos()).String(), pkg, writtenTables(n.Value))
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
			t.Errorf("no code writes %s: take it off the list", table)
		}
	}
}

// writingQueries returns the tables that each query of queries/ writes, by the query's name.
func writingQueries(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	all := make(map[string][]string)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "-- name: ")[1:] {
			query, body, _ := strings.Cut(part, " ")
			if tables := writtenTables(body); len(tables) > 0 {
				all[query] = tables
			}
		}
	}
	return all
}

// writtenTables returns the tables that SQL inserts into, updates or deletes from.
func writtenTables(sql string) (tables []string) {
	for _, m := range sqlWrite.FindAllStringSubmatch(sqlComment.ReplaceAllString(sql, ""), -1) {
		if table := m[1]; table != "set" && table != "of" && table != "skip" {
			tables = append(tables, table)
		}
	}
	return tables
}
