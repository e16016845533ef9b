package cli_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// configuration is a file with every section.
const configuration = `parley: 1
workspace: {name: Sales team, max_running: 7, messages_per_minute: 0, calls_per_minute: server, separate_approver: true}
agents:
  default: {instructions: You help the sales team., rules: {bash: deny}}
  support:
    instructions: {file: support.md}
    effort: low
    tools: {read: read_only, request_secret: read_only}
    limits: {max_turns: 3, max_cost_usd: 0.25}
skills:
  triage: {file: skills/triage/SKILL.md}
tool_rules: {wiki_write: ask}
allowlist: ["bash(git  diff *)", wiki_write(handbook/**)]
egress: {public: false, hosts: [B.example.com, a.example.com]}
secrets:
  CRM_KEY: {hosts: ["*.CRM.example"], in_query: true}
  LATER_KEY:
budgets: [{kind: user, max_tokens: 500}, {kind: workspace, max_cost_usd: 2.5}]
documents:
  wiki/: {directory: wiki}
  policies/travel.txt: Trains first.
`

// configure writes the file and the files that it names into a folder.
func configure(t *testing.T, folder string) {
	t.Helper()
	for name, text := range map[string]string{
		"parley.yaml": configuration, "support.md": "# Support\n\nYou answer customers.\n", "wiki/tea.md": "# Tea\n", "wiki/.hidden": "no",
		"skills/triage/SKILL.md": "---\nname: triage\ndescription: Sort a ticket.\n---\nSort it.\n",
	} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestApplyMakesTheWorkspaceEqual applies a file to an empty and to a changed workspace, on a server
// and on the database: it plans without a change, applies, finds nothing the second time, and the
// export of one workspace makes another one equal.
func TestApplyMakesTheWorkspaceEqual(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs a server")
	dsn := dbtest.DSN(t)
	srv, pool := serve(t, dsn, "127.0.0.1:0"), dbtest.Pool(t, dsn)
	changes := func() (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM admin_log").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	onDatabase := []string{"DATABASE_URL=" + dsn, "PARLEY_VAULT_KEY=" + vaultKey}
	for _, mode := range []string{"database", "server"} {
		sh := shell{t: t, dir: t.TempDir(), environ: onDatabase}
		configure(t, sh.dir)
		in := func(workspace string) shell {
			sh.must("workspace", "create", workspace)
			own := shell{t: t, dir: sh.dir, environ: append([]string{"PARLEY_WORKSPACE=" + workspace}, onDatabase...)}
			if mode == "server" {
				key := own.must("keys", "create", "--name", "admin", "--scope", "admin")
				own.environ = []string{"PARLEY_WORKSPACE=" + workspace, "PARLEY_URL=" + srv.url, "PARLEY_API_KEY=" + strings.TrimSpace(key)}
			}
			return own
		}
		first := in(mode + "-one")
		empty, before := first.must("export", "config", "--documents"), changes()
		out, errs, code := first.run("apply", "-f", "parley.yaml", "--dry-run")
		for _, want := range []string{"+++ agent support\n@@ -0,0 +1,", "\n-name: " + mode + "-one\n", "+# Tea", "+You help the sales team.", "+  You answer customers."} {
			if code != 0 || !strings.Contains(strings.ReplaceAll(out, "+instructions: You", "+You"), want) {
				t.Fatalf("%s: the plan lacks %q: exit code %d\n%s%s", mode, want, code, out, errs)
			}
		}
		if strings.Contains(out, "\x1b") || strings.Contains(out, "hidden") || !strings.Contains(errs, "LATER_KEY is to be set") || !strings.Contains(errs, "CRM_KEY is to be set") {
			t.Errorf("%s: the plan is\n%s%s", mode, out, errs)
		}
		if after := first.must("export", "config", "--documents"); after != empty || changes() != before {
			t.Fatalf("%s: a dry run changed\n%s\nto\n%s", mode, empty, after)
		}
		first.must("apply", "-f", "parley.yaml", "--yes")
		first.settled(mode, changes)

		first.must("permissions", "update", "bash", "deny")
		first.must("permissions", "update", "wiki_write", "allow")
		first.must("wiki", "delete", "policies/travel.txt", "--yes")
		first.must("egress", "create", "c.example.com")
		if out, errs, code := first.run("apply", "-f", "parley.yaml", "--yes"); code != 0 || !strings.Contains(out, "-allow\n+ask\n") || !strings.Contains(errs, "Made 2 changes") {
			t.Errorf("%s: the changed workspace: exit code %d\n%s%s", mode, code, out, errs)
		}
		first.settled(mode, changes)
		if out, errs, code := first.run("apply", "-f", "parley.yaml", "--yes", "--prune"); code != 0 || !strings.Contains(out, "-  - c.example.com\n") || !strings.Contains(errs, "Deleted tool rule bash") {
			t.Errorf("%s: pruned with exit code %d\n%s%s", mode, code, out, errs)
		}
		first.settled(mode, changes)

		const value = "hunter2-hunter2-hunter2"
		if mode == "database" {
			if _, errs, code := first.pipe(strings.NewReader(value), "secrets", "set", "CRM_KEY"); code != 0 {
				t.Fatalf("set the secret: %s", errs)
			}
		}
		exported := first.must("export", "config", "--documents")
		if strings.Contains(exported, value) {
			t.Error("the export has the value of a secret")
		}
		if err := os.WriteFile(filepath.Join(sh.dir, "copy.yaml"), []byte(exported), 0o644); err != nil {
			t.Fatal(err)
		}
		second := in(mode + "-two")
		second.must("apply", "-f", "copy.yaml", "--yes", "--prune")
		if copied := second.must("export", "config", "--documents"); strings.SplitN(copied, "\n", 2)[1] != strings.SplitN(exported, "\n", 2)[1] {
			t.Errorf("%s: the copy of\n%s\nis\n%s", mode, exported, copied)
		}
		first.refusesStale(mode)
	}
}

// settled checks that applying the file once more changes nothing.
func (s shell) settled(mode string, changes func() int) {
	s.t.Helper()
	before := changes()
	out, errs, code := s.run("apply", "-f", "parley.yaml", "--yes")
	if code != 0 || out != "" || !strings.Contains(errs, "Nothing to change") || changes() != before {
		s.t.Errorf("%s: applied again with exit code %d: %d changes\n%s%s", mode, code, changes()-before, out, errs)
	}
}

// refusesStale checks that a change made while apply waits for the answer is not overwritten.
func (s shell) refusesStale(mode string) {
	s.t.Helper()
	s.must("permissions", "update", "wiki_write", "deny")
	answer, write := io.Pipe()
	type result struct {
		errs string
		code int
	}
	done, asked := make(chan result, 1), make(chan struct{})
	go func() {
		_, errs, code := s.pipe(&signalling{answer, asked, false}, "apply", "-f", "parley.yaml")
		done <- result{errs, code}
	}()
	wait.Receive(s.t, "the question", asked)
	s.must("permissions", "update", "wiki_write", "allow")
	fmt.Fprintln(write, "y")
	_ = write.Close()
	if got := wait.Receive(s.t, "the end of apply", done); got.code != 1 || !strings.Contains(got.errs, "Another administrator has changed the configuration.") {
		s.t.Errorf("%s: exit code %d, %s", mode, got.code, got.errs)
	}
	if rules := s.must("permissions", "list", "--json"); !strings.Contains(rules, `"rule": "allow"`) {
		s.t.Errorf("%s: the change was overwritten: %s", mode, rules)
	}
}

// signalling is a stdin that reports its first read.
type signalling struct {
	io.Reader
	asked chan struct{}
	begun bool
}

func (s *signalling) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		close(s.asked)
	}
	return s.Reader.Read(p)
}

// TestApplyNamesFaultsOfTheFile reads files with a fault. None of them reaches the database.
func TestApplyNamesFaultsOfTheFile(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	sh.must("workspace", "create", "test")
	if err := os.WriteFile(filepath.Join(filepath.Dir(sh.dir), "outside.md"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                     "The file is empty",
		"parley: 2":                            "The format of the file is 2",
		"parley: 1\nagent: {}":                 "unknown member agent",
		"parley: 1\nagents: {a: {model: [x]}}": "line 2",
		"parley: 1\nskills: {a: 5}":            "is not a text",
		"parley: 1\nskills: {a: {path: x}}":    "unknown member path",
		"parley: 1\nskills: {a: {file: none.md}}":          "cannot be read",
		"parley: 1\nskills: {a: {file: ../outside.md}}":    "cannot be read",
		"parley: 1\ndocuments: {wiki/: x}":                 "is a folder in one place only",
		"parley: 1\nallowlist: [bash]":                     "allowlist has",
		"parley: 1\negress: {hosts: ['a b']}":              "is not a host",
		"parley: 1\nsecrets: {A_KEY: {hosts: []}}":         "has no hosts",
		"parley: 1\nworkspace: {open_streams: many}":       "is not a limit",
		"parley: 1\nbudgets: [{kind: user}, {kind: user}]": "twice",
		"parley: 1\n---\nparley: 1":                        "several documents",
		"parley: 1\n\tx":                                   "is not valid",
	} {
		_, errs, code := sh.pipe(strings.NewReader(text), "apply", "-f", "-", "--yes")
		if code != 2 || !strings.Contains(errs, want) || strings.Contains(errs, "manifest.") {
			t.Errorf("%q: exit code %d, %s; want %s", text, code, errs, want)
		}
	}
	_, errs, code := sh.pipe(strings.NewReader("parley: 1\ntool_rules: {bash: deny, bsh: deny}"), "apply", "-f", "-", "--yes")
	if code != 2 || !strings.Contains(errs, "tool rule bsh:") || !strings.Contains(errs, "1 of 2 changes were made") {
		t.Errorf("a rejected change: exit code %d, %s", code, errs)
	}
	if out := sh.must("apply", "--schema"); !strings.Contains(out, `"$schema"`) {
		t.Errorf("the schema is %s", out)
	}
}
