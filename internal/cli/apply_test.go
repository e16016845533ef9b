package cli_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// configuration is a file with every section.
const configuration = `parley: 1
workspace: {name: Sales team, max_running: 7, messages_per_minute: 0, calls_per_minute: server, separate_approver: true, search_language: german}
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
				key := own.must("keys", "create", "--name", "admin", "--scope", "admin", "--scope", "tools:read")
				own.environ = []string{"PARLEY_WORKSPACE=" + workspace, "PARLEY_URL=" + srv.url, "PARLEY_API_KEY=" + strings.TrimSpace(key)}
			}
			return own
		}
		first := in(mode + "-one")
		empty, before := first.must("export", "config", "--documents"), changes()
		out, errs, code := first.run("apply", "-f", "parley.yaml", "--dry-run")
		for _, want := range []string{"+++ agent support\n@@ -0,0 +1,", "\n-name: " + mode + "-one\n", "+# Tea",
			"+You help the sales team.", "+  You answer customers."} {
			if code != 0 || !strings.Contains(strings.ReplaceAll(out, "+instructions: You", "+You"), want) {
				t.Fatalf("%s: the plan lacks %q: exit code %d\n%s%s", mode, want, code, out, errs)
			}
		}
		if strings.Contains(out, "\x1b") || strings.Contains(out, "hidden") || !strings.Contains(errs, "LATER_KEY is to be set") ||
			!strings.Contains(errs, "CRM_KEY is to be set") {
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
		if out, errs, code := first.run("apply", "-f", "parley.yaml", "--yes"); code != 0 || !strings.Contains(out, "-allow\n+ask\n") ||
			!strings.Contains(errs, "Made 2 changes") {
			t.Errorf("%s: the changed workspace: exit code %d\n%s%s", mode, code, out, errs)
		}
		first.settled(mode, changes)
		if out, errs, code := first.run("apply", "-f", "parley.yaml", "--yes", "--prune"); code != 0 ||
			!strings.Contains(out, "-  - c.example.com\n") || !strings.Contains(errs, "Deleted tool rule bash") {
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
	if got := wait.Receive(s.t, "the end of apply", done); got.code != 1 || !strings.Contains(got.errs,
		"Another administrator has changed the configuration.") {
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
	if code != 2 || !strings.Contains(errs, "tool rule bsh:") || !strings.Contains(errs, "1 of 2 changes would be rejected") {
		t.Errorf("a rejected change: exit code %d, %s", code, errs)
	}
	if out := sh.must("apply", "--schema"); !strings.Contains(out, `"$schema"`) {
		t.Errorf("the schema is %s", out)
	}
}

// rejected is a file with a mistake in each object. Only the server's own checks find them.
const rejected = `parley: 1
workspace: {max_running: 0}
agents:
  default: {instructions: x, limits: {max_turns: 900}}
  Support: {instructions: x}
  analyst: {instructions: x, model: "no model"}
  good: {instructions: Help., tools: {tickets__list: read_only}}
skills: {triage: "no front matter"}
tool_rules: {bsh: deny, tickets__list: ask, tickets__open: ask}
egress: {public: false, hosts: [a.example.com]}
secrets: {lower_case: {hosts: [a.example.com]}}
tool_servers:
  tickets: {url: "http://tickets.demo.internal/mcp", tools: {list: {label: read_only}}}
  Upper: {url: "http://tickets.demo.internal/mcp"}
  away: {url: "http://away.demo.internal/mcp"}
  crm: {url: "http://tickets.demo.internal/mcp", headers: {Authorization: "Bearer ${CRM_KEY}"}}
budgets: [{kind: team, max_tokens: 5}, {kind: user, max_tokens: -5}]
documents: {/etc/passwd: x, wiki/a.md: "# A"}
`

// TestApplyChecksBeforeItWrites plans a file with many mistakes, on a server and on the database: the
// command lists them all and changes nothing. With the mistakes corrected it applies, tool server
// included, and the second time it changes nothing.
func TestApplyChecksBeforeItWrites(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs a server")
	tickets, err := demo.StartTickets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tickets.Close() })
	dsn, reach := dbtest.DSN(t), "PARLEY_EGRESS_ALLOW="+tickets.Pin()
	srv, pool := serve(t, dsn, "127.0.0.1:0", reach), dbtest.Pool(t, dsn)
	changes := func() (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM admin_log").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, mode := range []string{"database", "server"} {
		sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_WORKSPACE=" + mode, "DATABASE_URL=" + dsn}}
		sh.must("workspace", "create", mode)
		key := strings.TrimSpace(sh.must("keys", "create", "--name", "admin", "--scope", "admin", "--scope", "tools:read"))
		if mode == "database" {
			sh.writes("secrets.yaml", "parley: 1\ntool_rules: {bash: deny}\nsecrets: {CRM_KEY: {hosts: [crm.example]}}\n")
			before := changes()
			if _, errs, code := sh.run("apply", "-f", "secrets.yaml", "--dry-run"); code != 2 ||
				!strings.Contains(errs, "PARLEY_VAULT_KEY_FILE is not set") || changes() != before {
				t.Errorf("without a master key: exit code %d, %d changes, %s", code, changes()-before, errs)
			}
			sh.environ = append(sh.environ, reach, "PARLEY_VAULT_KEY="+vaultKey)
		} else {
			sh.environ = []string{"PARLEY_WORKSPACE=" + mode, "PARLEY_URL=" + srv.url, "PARLEY_API_KEY=" + key}
		}
		sh.writes("parley.yaml", rejected)
		before := changes()
		for _, flag := range []string{"--dry-run", "--yes"} {
			_, errs, code := sh.run("apply", "-f", "parley.yaml", flag)
			for _, want := range []string{"workspace: ", "agent default: ", "agent Support: ", "agent analyst: ", "skill triage: ",
				"tool rule bsh: ", "tool rule tickets__open: ",
				"secret lower_case: ", "tool server Upper: ", "tool server away: ", "tool server crm: The secret CRM_KEY", "budget team: ",
				"budget user: ", "document /etc/passwd: ",
				"14 of 19 changes would be rejected"} {
				if !strings.Contains(errs, want) {
					t.Errorf("%s %s: the rejections lack %q", mode, flag, want)
				}
			}
			if code != 2 || changes() != before || strings.Contains(errs, "agent good") || strings.Contains(errs, "tickets__list") {
				t.Errorf("%s %s: exit code %d, %d changes\n%s", mode, flag, code, changes()-before, errs)
			}
		}
		const corrected = "parley: 1\ntool_rules: {tickets__list: ask}\nagents: {good: {instructions: \"Help 💬.\\nBe \\U0001F9ED.\\n\", " +
			"tools: {tickets__list: read_only}}}\n" +
			"tool_servers: {tickets: {url: \"http://tickets.demo.internal/mcp\", allow: [list, create], timeout_seconds: 60, tools: " +
			"{list: {label: read_only}, create: {disabled: true}}}}\n"
		sh.writes("parley.yaml", corrected)
		if out := sh.must("apply", "-f", "parley.yaml", "--yes"); !strings.Contains(out, "\n+  Help 💬.\n+  Be 🧭.\n") {
			t.Errorf("%s: the differences are\n%s", mode, out)
		}
		sh.settled(mode, changes)
		if out := sh.must("export", "config"); !strings.Contains(out,
			"tool_servers:\n  tickets:\n    url: http://tickets.demo.internal/mcp\n    allow:\n      - create\n      - list\n    "+
				"tools:\n      create:\n        disabled: true\n      list:\n        label: read_only\n") {
			t.Errorf("%s: exported\n%s", mode, out)
		}
		sh.must("tools", "label", "tickets", "list", "changes")
		sh.must("apply", "-f", "parley.yaml", "--yes")
		sh.settled(mode, changes)
		sh.writes("parley.yaml", strings.ReplaceAll(corrected, "60", "61"))
		if _, errs, code := sh.run("apply", "-f", "parley.yaml", "--dry-run"); code != 2 ||
			!strings.Contains(errs, "parley tools remove tickets") {
			t.Errorf("%s: another timeout: exit code %d, %s", mode, code, errs)
		}
		sh.appliesHTTP(mode, changes)
		sh.writes("parley.yaml", "parley: 1\ntool_rules: {}\ntool_servers: {}\n")
		sh.must("apply", "-f", "parley.yaml", "--yes", "--prune")
		sh.settled(mode, changes)
		if out := sh.must("export", "config"); !strings.Contains(out, "tool_servers: {}\n") {
			t.Errorf("%s: pruned\n%s", mode, out)
		}
	}
}

func (s shell) writes(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// TestApplyContinuesAfterAFailure fails at the second change: the command names the first one,
// which was made, and a second run makes the rest.
func TestApplyContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	sh.must("workspace", "create", "test")
	// The check passes, and the change itself fails: a sequence is not rolled back.
	const failing = `CREATE SEQUENCE tries;
		CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.tool = 'read' AND nextval('tries') = 2 THEN RAISE 'no more space'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER fail_once BEFORE INSERT ON tool_rules FOR EACH ROW EXECUTE FUNCTION fail_once()`
	if _, err := dbtest.Pool(t, dsn).Exec(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	sh.writes("parley.yaml", "parley: 1\ntool_rules: {bash: deny, read: deny, write: deny}\n")
	_, errs, code := sh.run("apply", "-f", "parley.yaml", "--yes")
	if code != 1 || !strings.Contains(errs, "1 of 3 changes were made: tool rule bash.") ||
		!strings.Contains(errs, "Run parley apply again: it continues with the rest.") {
		t.Errorf("the first run: exit code %d, %s", code, errs)
	}
	if _, errs, code := sh.run("apply", "-f", "parley.yaml", "--yes"); code != 0 || !strings.Contains(errs, "Made 2 changes") {
		t.Errorf("the second run: exit code %d, %s", code, errs)
	}
}

// appliesHTTP adds an HTTP API, changes its tools, and exports it for another workspace.
func (s shell) appliesHTTP(mode string, changes func() int) {
	s.t.Helper()
	const file = `parley: 1
tool_servers:
  erp:
    kind: http
    url: https://erp.example.com/v1
    tools:
      get_customer:
        label: read_only
        description: Get a customer.
        input_schema: {type: object, required: [id], properties: {id: {type: integer, minimum: 1}, "fields": {type: string}}}
        http: {method: get, path: "/customers/{id}"}
      note: {disabled: true, description: Write a note., http: {method: POST, path: /notes, timeout_seconds: 5}}
`
	s.writes("parley.yaml", strings.ReplaceAll(file, "method: POST", "method: POKE"))
	if _, errs, code := s.run("apply", "-f", "parley.yaml", "--dry-run"); code != 2 ||
		!strings.Contains(errs, "tool server erp: The method of a request is one of") {
		s.t.Errorf("%s: a wrong method: exit code %d, %s", mode, code, errs)
	}
	s.writes("parley.yaml", file)
	s.must("apply", "-f", "parley.yaml", "--yes")
	s.settled(mode, changes)
	exported := s.must("export", "config")
	for _, want := range []string{"    kind: http\n    url: https://erp.example.com/v1\n",
		"            fields: query\n            id: path\n", "          path: /customers/{id}\n"} {
		if !strings.Contains(exported, want) {
			s.t.Errorf("%s: the export lacks %q:\n%s", mode, want, exported)
		}
	}
	s.writes("parley.yaml", strings.NewReplacer("Get a customer.", "Find a customer.", "disabled: true, ", "label: read_only, ", "note:",
		"memo:").Replace(file))
	s.must("apply", "-f", "parley.yaml", "--yes")
	s.settled(mode, changes)
	s.writes("parley.yaml", "parley: 1\ntool_servers: {drive: {url: 'https://drive.example.com/mcp', auth: oauth, scopes: [files], "+
		"tools: {list: {label: read_only}}}}\n")
	s.must("apply", "-f", "parley.yaml", "--yes") // it has no tools before it is connected
	s.settled(mode, changes)
	if out := s.must("export", "config"); !strings.Contains(out, "    auth: oauth\n    auth_per: workspace\n    scopes:\n      - files\n") {
		s.t.Errorf("%s: the export lacks OAuth:\n%s", mode, out)
	}
	s.must("tools", "remove", "drive")
	s.writes("parley.yaml", exported)
	s.must("apply", "-f", "parley.yaml", "--yes")
	s.settled(mode, changes)
	if again := s.must("export", "config"); again != exported {
		s.t.Errorf("%s: applied again, the export is\n%s\nand was\n%s", mode, again, exported)
	}
}
