package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

// office is an administrator's shell with a workspace, without a server.
func office(t *testing.T) shell {
	t.Helper()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t)}}
	sh.must("workspace", "create", "office")
	return sh
}

func TestRulesOfToolsAreSetAndReset(t *testing.T) {
	t.Parallel()
	sh := office(t)
	rule := func(tool string) (rule *string, builtIn string) {
		t.Helper()
		var list struct {
			Data []struct {
				Tool, Default string
				Rule          *string
			}
		}
		if err := json.Unmarshal([]byte(sh.must("permissions", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Data {
			if s.Tool == tool {
				return s.Rule, s.Default
			}
		}
		t.Fatalf("no %s in %v", tool, list.Data)
		return nil, ""
	}
	if r, builtIn := rule("wiki_write"); r != nil || !strings.Contains(builtIn, "wiki:write") {
		t.Errorf("rule %v, built-in %q", r, builtIn)
	}
	for _, want := range []string{"ask", "deny", "allow"} {
		sh.must("permissions", "set", "wiki_write", want)
		if r, _ := rule("wiki_write"); r == nil || *r != want {
			t.Errorf("set to %s: %v", want, r)
		}
	}
	sh.must("permissions", "reset", "wiki_write")
	if r, _ := rule("wiki_write"); r != nil {
		t.Errorf("after the reset: %q", *r)
	}
	if out := sh.must("permissions", "list"); !strings.Contains(out, "built-in") || !strings.Contains(out, "http_request") {
		t.Errorf("the table:\n%s", out)
	}
	for line, want := range map[string]string{
		"set wiki_wirte ask":       "Did you mean wiki_write?",
		"set wiki_write maybe":     "allow, ask or deny",
		"set request_secret allow": "always asks",
		"set wiki_write":           "RULE is missing",
		"reset nothing":            "Unknown tool",
	} {
		if _, errs, code := sh.run(append([]string{"permissions"}, strings.Fields(line)...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("parley permissions %s: exit code %d, %s", line, code, errs)
		}
	}
}

func TestAllowlistFromAdditionToRevocation(t *testing.T) {
	t.Parallel()
	sh := office(t)
	if out, errs, code := sh.run("allowlist", "list"); code != 0 || out != "" || !strings.Contains(errs, "is empty") {
		t.Errorf("an empty list: %q, %q", out, errs)
	}
	_, errs, code := sh.run("allowlist", "add", "bash(git diff:*)")
	if code != 0 || !strings.Contains(errs, "bash(git diff *)") {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	sh.must("allowlist", "add", "bash(git diff *)")
	list := func(args ...string) (entries []map[string]any) {
		t.Helper()
		var all struct{ Data []map[string]any }
		if err := json.Unmarshal([]byte(sh.must(append([]string{"allowlist", "list", "--json"}, args...)...)), &all); err != nil {
			t.Fatal(err)
		}
		return all.Data
	}
	entries := list()
	if len(entries) != 1 || entries[0]["pattern"] != "bash(git diff *)" || !strings.HasPrefix(fmt.Sprint(entries[0]["added_by"]), "cli:") ||
		entries[0]["hits"] != 0.0 {
		t.Fatalf("%v", entries)
	}
	id := entries[0]["allowlist_id"].(string)
	if out := sh.must("allowlist", "list"); !strings.Contains(out, id) || !strings.Contains(out, "active") {
		t.Errorf("the table:\n%s", out)
	}
	sh.must("allowlist", "revoke", id)
	if n, all := len(list()), list("--all"); n != 0 || len(all) != 1 || all[0]["revoked_at"] == nil {
		t.Errorf("after the revocation %d in force, %v", n, all)
	}
	for _, args := range [][]string{{"revoke", id}, {"revoke", "nonsense"}} {
		if _, errs, code := sh.run(append([]string{"allowlist"}, args...)...); code != 2 || !strings.Contains(errs, "no such entry") {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
	for pattern, want := range map[string]string{"bash(git *)": "sub-commands", "bash(*)": "begins with a program", "bash": "in parentheses"} {
		if _, errs, code := sh.run("allowlist", "add", pattern); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", pattern, code, errs)
		}
	}
}
