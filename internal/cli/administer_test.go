package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// administered are commands for administrators. WS stands for the workspace.
const administered = `workspace update WS --max-turns 9 --messages-per-minute 0 --name Sales
workspace show WS
workspace update WS --max-turns 9000
workspace update WS --messages-per-minute -7
workspace pause WS
workspace resume WS
workspace create WS-other
workspace create WS-other
workspace delete WS-other --yes
workspace delete WS-other --yes
keys create --name web --scope chat
keys list
keys delete nothing1
keys delete nothing1 --yes
keys webhook-token create
keys webhook-token create
keys webhook-token show
keys webhook-token delete
keys webhook-token delete --yes
keys webhook-token show
permissions update bash deny
permissions update bsh deny
permissions list
permissions reset bash --json
allowlist create bash(git  diff *)
allowlist create bash
allowlist list
allowlist delete 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b
egress create B.example.com
egress create no host
egress public on
egress list
egress delete a.example.com
egress delete b.example.com --json
egress log
wiki put wiki/a.md page.md
wiki list
wiki show wiki/a.md --json
wiki show wiki/b.md
wiki delete wiki/a.md --yes
secrets set CRM_KEY --no-value --host crm.example.com
secrets set lower --no-value --host crm.example.com
secrets list
secrets delete NO_KEY --yes
secrets delete CRM_KEY --yes
skills create jam
skills push jam
skills push jam
skills list
skills show jam
skills show jan
skills show jam --history
skills publish jam --version 7
skills archive jam
agent create support --instructions Help.
agent create support
agent edit --effort low
agent edit --effort low
agent diff
agent publish --note why
agent publish
agent list
agent show
agent show nobody
agent show --history
agent rollback --to 1
agent delete support --yes
agent delete default --yes
budget update user anna --max-tokens 5
budget update user anna --max-cost-usd 2
budget update workspace
budget update key nothing1 --max-tokens 5
budget list --json
budget list
budget delete user anna
budget delete user anna
sessions delete 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b --yes
sessions files 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b
sessions files x
callbacks secret
callbacks secret
callbacks secret --rotate --overlap 0s
callbacks secret --rotate --overlap never
tools add tickets --mcp http://tickets.demo.internal/mcp --allow list --timeout 5s
tools add tickets --mcp http://tickets.demo.internal/mcp
tools add Tickets --mcp https://127.0.0.1/
tools add intranet --mcp http://intranet.internal/mcp
tools add bad --mcp http://bad_host:99999/mcp?x
tools add crm --mcp http://tickets.demo.internal/mcp --secret CRM_TOKEN
tools list
tools label tickets list read_only
tools label tickets list purple
tools label tickets nothing changes
tools show tickets
tools show tickets --json
tools test tickets list --input {"state":"closed"}
tools test tickets list --input {"state":1}
tools test tickets nothing
tools refresh tickets
tools accept tickets list
tools disable tickets list
tools test tickets list
tools disable tickets
tools enable tickets
tools remove tickets
tools remove tickets
server pause
server resume`

// administeredSentences are parts of what some of the commands print, with the exit code at the end.
var administeredSentences = map[string]string{
	"permissions update bash deny":                                            "bash is denied now.",
	"callbacks secret --rotate --overlap 0s":                                  "Created a new signing secret; the old one ends now.",
	"sessions files 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b":                     "does not exist in this workspace",
	"budget list --json":                                                      "\"max_cost_usd\": 2,\n \"max_tokens\": 5,",
	"budget update key nothing1 --max-tokens 5":                               "The workspace has no key",
	"workspace update WS --messages-per-minute -7":                            "-per-minute -7 is not a limit.",
	"tools add intranet --mcp http://intranet.internal/mcp":                   "The URL's host is not a public name.",
	"tools add bad --mcp http://bad_host:99999/mcp?x":                         "The address of a tool server is like",
	`tools test tickets list --input {"state":"closed"}`:                      `"Coffee machine is loud"`,
	`tools test tickets list --input {"state":1}`:                             "The call failed.",
	"tools add tickets --mcp http://tickets.demo.internal/mcp":                `There is a tool server "tickets" already.`,
	"tools add crm --mcp http://tickets.demo.internal/mcp --secret CRM_TOKEN": "The secret CRM_TOKEN",
}

// TestAdministrationIsEqualOverTheAPI runs the commands for administrators on the database and with a
// key on a server: they print the same and exit with the same codes. The log names the key, or the
// user of the command.
func TestAdministrationIsEqualOverTheAPI(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs a server")
	dsn := dbtest.DSN(t)
	tickets, err := demo.StartTickets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tickets.Close() })
	reach := "PARLEY_EGRESS_ALLOW=" + tickets.Pin()
	srv, pool := serve(t, dsn, "127.0.0.1:0", reach), dbtest.Pool(t, dsn)
	plain := []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`(prl|whtok|whsec)_\S+`), "KEY"},
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`), "ID"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]+( [A-Z]+|Z)?`), "TIME"},
		{regexp.MustCompile(`(cli|key):\S+`), "ACTOR"},
		{regexp.MustCompile(` \(request \S+\)`), ""},
		{regexp.MustCompile(`\b[0-9A-Za-z]{8}\b`), "ACTOR"}, // the id of a key
		{regexp.MustCompile(`[ \t]+`), " "},
		{regexp.MustCompile(`TIME (never|TIME) TIME`), "TIME LAST-USE TIME"},
	}
	printed := make(map[string][]string)
	for mode, ws := range map[string]string{"database": "zulu", "server": "yoke"} {
		base := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn, "PARLEY_WORKSPACE=" + ws,
			"PARLEY_VAULT_KEY=" + vaultKey, "USER=anna", reach}}
		fileOf(t, base, "page.md", "# A page\n")
		base.must("workspace", "create", ws)
		key := base.must("keys", "create", "--name", "admin", "--scope", "all", "--scope", "admin", "--scope", "server:admin")
		sh := base
		if mode == "server" {
			sh.environ = []string{"PARLEY_URL=" + srv.url, "PARLEY_WORKSPACE=" + ws, "PARLEY_API_KEY=" + strings.TrimSpace(key)}
		}
		for line := range strings.Lines(administered) {
			args := strings.SplitN(strings.TrimSpace(strings.ReplaceAll(line, "WS", ws)), " ", 3)
			if args[1] != "create" || args[0] == "workspace" || args[0] == "agent" || args[0] == "keys" || args[0] == "skills" {
				args = strings.Fields(strings.Join(args, " "))
			}
			out, errs, code := sh.run(args...)
			text := strings.ReplaceAll(out+errs, ws, "WS") + string(rune('0'+code))
			for _, r := range plain {
				text = r.pattern.ReplaceAllString(text, r.with)
			}
			printed[mode] = append(printed[mode], text)
			if want := administeredSentences[strings.TrimSpace(line)]; !strings.Contains(text, want) {
				t.Errorf("%s: parley %sprints\n%s\nwithout %s", mode, line, text, want)
			}
		}
		kind := map[string]string{"database": "command", "server": "key"}[mode]
		var all, named int
		err := pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE actor_kind = $2) FROM admin_log
			WHERE workspace_id = (SELECT id FROM workspaces WHERE slug = $1) AND object NOT IN ('api_keys', 'workspaces', 'agents', 'agent_versions', 'credentials')`, ws, kind).Scan(&all, &named)
		if err != nil || all < 10 || named != all {
			t.Errorf("%s: %d of %d changes are recorded as those of a %s: %v", mode, named, all, kind, err)
		}
	}
	i := 0
	for line := range strings.Lines(administered) {
		if db, api := printed["database"][i], printed["server"][i]; db != api {
			t.Errorf("parley %son the database:\n%s\nover the API:\n%s", line, db, api)
		}
		i++
	}
}

// TestAdministrationNeedsTheScope runs a command for administrators with a key that lacks the scope,
// and one of another workspace.
func TestAdministrationNeedsTheScope(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs a server")
	dsn := dbtest.DSN(t)
	srv := serve(t, dsn, "127.0.0.1:0")
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn, "PARLEY_WORKSPACE=one"}}
	sh.must("workspace", "create", "one")
	sh.must("workspace", "create", "two")
	key := strings.TrimSpace(sh.must("keys", "create", "--name", "web", "--scope", "all"))
	sh.environ = append(sh.environ, "PARLEY_URL="+srv.url, "PARLEY_API_KEY="+key)
	if _, errs, code := sh.run("keys", "list"); code != 4 || !strings.Contains(errs, "lacks the scope admin") {
		t.Errorf("without the scope: exit code %d, %s", code, errs)
	}
	if _, errs, code := sh.run("permissions", "list", "-w", "two"); code != 2 || !strings.Contains(errs, "It belongs to the workspace one") {
		t.Errorf("another workspace: exit code %d, %s", code, errs)
	}
	remote := sh
	remote.environ = append([]string{}, sh.environ[1:]...)
	if _, errs, code := remote.run("vault", "rotate"); code != 2 ||
		!strings.Contains(errs, "`parley vault rotate` works on the database only.") {
		t.Errorf("a command of the database: exit code %d, %s", code, errs)
	}
	sh.environ = append(sh.environ, "PARLEY_DATABASE_URL="+dsn)
	sh.must("keys", "list", "-w", "two")
}
