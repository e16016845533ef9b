package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestRefusalsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=postgres://127.0.0.1:1/none"}}
	for line, want := range map[string]string{
		"keys rotate":                                "ID is missing",
		"keys list extra":                            `"extra" is too much`,
		"apply cfg.yaml":                             "Use -f cfg.yaml.",
		"models set lab --timeout 11m":               "--timeout cannot be 11m0s.\n        It takes whole seconds, from 1s to 10m.",
		"models set lab --timeout 1500ms":            "--timeout cannot be 1.5s.",
		"tools add x --mcp https://x/ --timeout 11m": "--timeout cannot be 11m0s.",
		"foo":                                   "See parley --help.",
		"wiki put":                              "PATH is missing",
		"wiki put a b c":                        `"a" is not a folder`,
		"wiki sync":                             "DIR is missing",
		"workspace create":                      "NAME is missing",
		"workspace update x":                    "No change is given",
		"sessions tail":                         "SESSION is missing",
		"sessions show x --as-of abc":           "the id of an event, such as 1042",
		"sessions fork x --at 1.5":              "the id of an event, such as 1042",
		"sessions fork x --at 0":                "--at cannot be 0.\n        It takes the id of an event, such as 1042",
		"sessions show x --as-of -5":            "--as-of cannot be -5.\n        It takes the id of an event, such as 1042",
		"sessions context x --turn 0":           "--turn cannot be 0.\n        It takes a whole number from 1",
		"sessions context x --step -1":          "--step cannot be -1",
		"send --attach report.csv hi":           "It takes the id of an uploaded file: parley files upload FILE",
		"sessions list --limit x":               "It takes a whole number",
		"sessions list --limit 0":               "from 1 to 100",
		"sessions list --limit 101":             "from 1 to 100",
		"files up":                              "FILE is missing",
		"files down":                            "Which files?",
		"files down x --session y":              "Which files?",
		"files list --limit 0":                  "from 1 to 100",
		"ready --wait soon":                     "a time such as",
		"ready --wait":                          "needs one",
		"workspace update x --max-turns 9e9":    "It takes a whole number",
		"keys create --name x --expires 99999d": "The longest time is 36500d",
		"keys create --name x --expires 5216w":  "The longest time is 36500d",
		"keys create --name x --expires 99999999999999999999d": "The longest time is 36500d",
		"keys create --name x --expires -1w":                   "is not a duration",
		"help nope":                                            "Unknown command",
		"help exit-cods":                                       "Did you mean parley help exit-codes?",
		"help keys rotat":                                      "Did you mean parley help keys rotate?",
		"help send nope":                                       "has no commands below it",
		"send --output":                                        "needs one",
	} {
		_, errs, code := sh.run(strings.Fields(line)...)
		if code != 2 || !strings.Contains(errs, want) || regexp.MustCompile(`strconv|arg\(s\)|\binvalid argument`).MatchString(errs) {
			t.Errorf("parley %s: exit code %d, %s", line, code, errs)
		}
	}
	if out := sh.must("help", "exit-codes"); !strings.Contains(out, "130  interrupted") {
		t.Errorf("help exit-codes: %s", out)
	}
	if out := sh.must("help", "keys", "rotate"); out != sh.must("keys", "rotate", "--help") {
		t.Errorf("help keys rotate: %s", out)
	}
	if flag, word := sh.must("--version"), sh.must("version"); flag != word {
		t.Errorf("--version prints %q, version %q", flag, word)
	}
}

// TestAnEmptyValueIsNoChoice checks empty arguments, which unset shell variables produce. If they
// counted as absent, the command would list the sessions of all callers or start another
// conversation.
func TestAnEmptyValueIsNoChoice(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=postgres://127.0.0.1:1/none", "PARLEY_URL=http://127.0.0.1:1",
		"PARLEY_WORKSPACE=test", "PARLEY_API_KEY=x"}}
	for line, want := range map[string]string{
		"sessions list --caller _":        "--caller is empty.",
		"sessions list --status _ --json": "--status is empty.",
		"sessions list --cursor _":        "--cursor is empty.",
		"sessions show _":                 "SESSION is empty.",
		"sessions cancel _":               "SESSION is empty.",
		"sessions tail x --after _":       "--after is empty.",
		"send -s _ hi":                    "--session is empty.",
		"send -c _ hi":                    "--caller is empty.",
		"send --attach _ hi":              "--attach is empty.",
		"send --attach a,,b hi":           "--attach is empty.",
		"send --secret-input _ hi":        "--secret-input is empty.",
		"send --skill _ hi":               "--skill is empty.",
		"send -w _ hi":                    "--workspace is empty.",
		"approvals list --session _":      "--session is empty.",
		"approvals allow x --pattern _":   "--pattern is empty.",
		"files down --session _ x":        "--session is empty.",
		"wiki get _":                      "PATH is empty.",
		"skills show _":                   "NAME is empty.",
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], "_")
		}
		if _, errs, code := sh.run(args...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("parley %s: exit code %d, %s", line, code, errs)
		}
	}
	if _, errs, code := sh.run("approvals", "deny", "x", "--reason", ""); code != 5 {
		t.Errorf("an empty reason: exit code %d, %s", code, errs)
	}
}

func TestEveryViolationHasALine(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"workspace", "update", "test", "--max-turns", "0", "--max-running", "0", "--model", "gtp"},
			[]string{"max_turns is 1 to 200.", "max_running is 1 to 10000.", "Unknown model"}},
		{[]string{"workspace", "update", "test", "--search-language", "klingon"},
			[]string{`"klingon" is not a language of the search. Use arabic, danish, `}},
		{[]string{"keys", "create", "--name", "x", "--scope", "chatt,nope"}, []string{"Unknown scope chatt. Did you mean chat?",
			"Unknown scope nope. The scopes are all, chat, "}},
		{[]string{"send", "--session", "x", "--caller", strings.Repeat("x", 2000), strings.Repeat("long ", 50_000)},
			[]string{"caller_id: ", "command: "}},
	} {
		_, errs, code := sh.run(c.args...)
		if code != 2 || strings.Contains(errs, "more)") {
			t.Errorf("%.100v: exit code %d: %s", c.args, code, errs)
		}
		for _, want := range c.want {
			if !regexp.MustCompile(`(?m)^(parley:|) +` + regexp.QuoteMeta(want)).MatchString(errs) {
				t.Errorf("%.100v: no line begins with %q:\n%s", c.args, want, errs)
			}
		}
	}
}

func TestAWorkspacesLimitsCanBeSet(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t)}}
	if err := os.WriteFile(filepath.Join(sh.dir, "kind.md"), []byte("Be kind."), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.must("workspace", "create", "one", "--max-running", "3", "--instructions-file", "kind.md")
	sh.must("workspace", "update", "one", "--model", "openai/gpt-5-mini", "--max-response-seconds", "61", "--max-turns", "7",
		"--history-tokens", "0", "--name", "The one",
		"--messages-per-minute", "600", "--calls-per-minute", "0", "--open-streams", "100", "--search-language", "german",
		"--reasoning-summaries")
	sh.must("workspace", "update", "one", "--open-streams", "-1")
	sh.must("workspace", "update", "one", "--storage-quota", "7")
	if err := os.WriteFile(filepath.Join(sh.dir, "large.md"), []byte(strings.Repeat("x", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.must("wiki", "put", "large.md", "large.md")
	for _, want := range []string{"openai/gpt-5-mini", "61", "The one", "1.0 of 7 MiB", "  600 ", "  no limit  ", "SEPARATE-APPROVER"} {
		if out := sh.must("workspace", "list"); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var list struct{ Data []map[string]any }
	if err := json.Unmarshal([]byte(sh.must("workspace", "list", "--json")), &list); err != nil || len(list.Data) != 1 {
		t.Fatalf("%v: %v", err, list)
	}
	for name, want := range map[string]any{
		"slug": "one", "name": "The one", "instructions": "Be kind.", "model": "openai/gpt-5-mini",
		"max_response_seconds": 61.0, "max_turns": 7.0, "max_running": 3.0, "history_tokens": 0.0,
		"messages_per_minute": 600.0, "calls_per_minute": 0.0, "open_streams": nil, "storage_quota": 7.0 * (1 << 20),
		"search_language": "german", "reasoning_summaries": true,
	} {
		if got := list.Data[0][name]; got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
	sh.must("workspace", "update", "one", "--model", "")
	if out := sh.must("workspace", "list"); !strings.Contains(out, "default") {
		t.Errorf("the server's own model again: %s", out)
	}
	if _, errs, code := sh.run("workspace", "update", "two", "--max-turns", "3"); code != 2 ||
		!strings.Contains(errs, `parley: Workspace "two" does not exist.`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestListsSpeakTheLanguageOfTheAPI(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("send", "@say one")
	sh.must("send", "@say two")
	if _, errs, code := sh.pipe(strings.NewReader("# Tea"), "wiki", "put", "wiki/tea.md"); code != 0 {
		t.Fatal(errs)
	}
	sh.must("skills", "new", "tea")
	sh.must("skills", "push", "tea")
	snake := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, line := range []string{"workspace list", "keys list", "wiki list", "skills list", "sessions list", "migrate status",
		"config print"} {
		var body struct{ Data []map[string]any }
		if err := json.Unmarshal([]byte(sh.must(append(strings.Fields(line), "--json")...)), &body); err != nil || len(body.Data) == 0 {
			t.Errorf("%s: %v, %v", line, err, body)
		}
		for _, item := range body.Data {
			for name := range item {
				if !snake.MatchString(name) {
					t.Errorf("%s has a field %q", line, name)
				}
			}
		}
	}
	var page struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
		HasMore bool   `json:"has_more"`
		Next    string `json:"next_cursor"`
	}
	seen := map[string]bool{}
	for args, n := []string{"sessions", "list", "--json", "--limit", "1"}, 0; n == 0 || page.HasMore; n++ {
		page.Next = ""
		if err := json.Unmarshal([]byte(sh.must(args...)), &page); err != nil || len(page.Data) != 1 || n > 2 {
			t.Fatalf("%v: %+v", err, page)
		}
		seen[page.Data[0].SessionID] = true
		args = []string{"sessions", "list", "--json", "--limit", "1", "--cursor", page.Next}
	}
	if len(seen) != 2 {
		t.Errorf("page by page: %v", seen)
	}
	if _, errs, _ := sh.run("sessions", "list", "--limit", "1"); !strings.Contains(errs, "--cursor ") {
		t.Errorf("a list with another page does not report it: %s", errs)
	}
}

func TestAKeyMayBeMissingForTwoReasons(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_API_KEY=", "PARLEY_URL=http://127.0.0.1:1"}}
	if err := os.Mkdir(filepath.Join(sh.dir, ".parley"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sh.dir, ".parley", "dev.env"),
		[]byte("export PARLEY_URL='http://127.0.0.1:1'\nexport PARLEY_API_KEY='prl_x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := sh.run("send", "hi"); code != 4 || strings.Contains(errs, "there is no .parley") ||
		!strings.Contains(errs, "unset PARLEY_URL") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestTailOfACompletedSessionSaysSo(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("send", "--caller", "alice", "@say All said.")
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	out, errs, code := sh.run("sessions", "tail", list.Data[0].SessionID)
	_, again, ok := strings.Cut(strings.TrimSpace(errs), "again: parley ")
	if out != "" || code != 0 || !ok || !strings.Contains(errs, "is completed") {
		t.Fatalf("exit code %d: %q, %s", code, out, errs)
	}
	if out := sh.must(strings.Fields(again)...); out != "All said.\n" {
		t.Errorf("%s: %q", again, out)
	}
}

func TestTailOfAnUnusedForkWaits(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("send", "--caller", "alice", "@say All said.")
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	fork := strings.TrimSpace(sh.must("sessions", "fork", list.Data[0].SessionID))
	left, tail := sh.start("sessions", "tail", fork), sh.start("sessions", "tail", fork)
	left.errs.wait(t, "no turn yet")
	tail.errs.wait(t, "no turn yet")
	left.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", left.code); code != 130 || strings.Contains(left.errs.String(), "The turn continues") {
		t.Errorf("exit code %d: %s", code, left.errs)
	}
	sh.must("send", "--session", fork, "@say In the fork.")
	if code := wait.Receive(t, "the exit code", tail.code); code != 0 || tail.out.String() != "In the fork.\n" ||
		strings.Count(tail.errs.String(), "no turn yet") != 1 {
		t.Errorf("exit code %d: %s, %s", code, tail.out, tail.errs)
	}
}

func TestAnErasedSessionIsShownAsOne(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("send", "@say All said.")
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	id := list.Data[0].SessionID
	gone := func(why string, args ...string) {
		t.Helper()
		if _, errs, code := sh.run(args...); code != 1 || !strings.Contains(errs, why) ||
			!strings.Contains(errs, "parley sessions show "+id) || strings.Contains(errs, "turn failed") {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	gone("not the id of an event", "sessions", "tail", id, "--after", "999999999")
	if out := sh.must("sessions", "tail", id, "--after", "0", "--output", "stream-json"); !strings.HasPrefix(out,
		`{"event":"open","id":"0"`) || strings.Count(out, `"open"`) != 1 {
		t.Errorf("the frames are %s", out)
	}
	if out := sh.must("sessions", "export", id, "--format", "jsonl"); strings.Contains(out, `"open"`) {
		t.Errorf("the export is %s", out)
	}
	sh.must("sessions", "erase", id, "--yes")
	gone("was erased", "sessions", "tail", id)
	for word, with := range map[string]shell{"context": sh.scoped("admin"), "fork": sh} {
		if out, errs, code := with.run("sessions", word, id); out != "" || code != 2 || !strings.Contains(errs, "was erased") ||
			strings.Contains(errs, "Correct") {
			t.Errorf("%s: exit code %d: %s", word, code, errs)
		}
	}
	for _, args := range [][]string{{"list"}, {"show", id}, {"export", id}} {
		if out := sh.must(append([]string{"sessions"}, args...)...); !strings.Contains(out, "erased") {
			t.Errorf("%v: %s", args, out)
		}
	}
	for _, format := range []string{"json", "jsonl"} {
		if out, errs, code := sh.run("sessions", "export", id, "--format", format); out != "" || code != 1 ||
			!strings.Contains(errs, "was erased") {
			t.Errorf("%s: exit code %d: %s%s", format, code, out, errs)
		}
	}
}

func TestTheAnswerEndsBeforeItsUsage(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	var both bytes.Buffer
	code := cli.Run(t.Context(), cli.Host{Stdout: &both, Stderr: &both, Environ: sh.environ, Dir: sh.dir}, []string{"send", "@say One two."})
	if code != 0 || !strings.HasPrefix(both.String(), "One two.\n") || strings.Contains(both.String(), "\n\n") {
		t.Errorf("exit code %d: %q", code, both.String())
	}
}

func TestADocumentCanBeDeleted(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t)}}
	sh.must("workspace", "create", "one")
	if _, errs, code := sh.pipe(strings.NewReader("# Tea"), "wiki", "put", "wiki/tea.md"); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := sh.run("wiki", "delete", "wiki/tee.md"); code != 2 || !strings.Contains(errs, "wiki/tea.md") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := sh.pipe(strings.NewReader("n\n"), "wiki", "delete", "wiki/tea.md"); code != 2 ||
		!strings.Contains(errs, "permanently? [y/N]") || sh.must("wiki", "get", "wiki/tea.md") != "# Tea" {
		t.Errorf("not confirmed: exit code %d, %s", code, errs)
	}
	sh.must("wiki", "delete", "wiki/tea.md", "--yes")
	if _, _, code := sh.run("wiki", "get", "wiki/tea.md"); code != 2 {
		t.Errorf("it still exists: exit code %d", code)
	}
}

func TestTheDocumentationNamesEveryCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sh := shell{t: t, dir: t.TempDir()}
	for _, path := range commands(t, sh) {
		line := strings.Join(append([]string{"parley"}, path...), " ")
		if group := strings.Contains(sh.must(append(path, "--help")...), "\nCommands:\n"); !group &&
			!regexp.MustCompile("`"+line+"[` ]").Match(page) {
			t.Errorf("docs/reference/cli.md does not have %s", line)
		}
	}
	_, table, _ := strings.Cut(string(page), "| code | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if help := sh.must("help", "exit-codes"); !regexp.MustCompile(`(?m)^  ` + cells[0] + ` +` + regexp.QuoteMeta(cells[1]) +
			`$`).MatchString(help) {
			t.Errorf("exit code %s is not %q in\n%s", cells[0], cells[1], help)
		}
	}
}

// TestOldVerbsStillWork compares the help of the previous release's verbs and nouns with that of
// their successors, and checks that no list of commands shows them.
func TestOldVerbsStillWork(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir()}
	for before, now := range map[string]string{
		"allowlist add": "allowlist create", "allowlist revoke": "allowlist delete", "egress allow": "egress create",
		"egress rm":   "egress delete",
		"keys revoke": "keys delete", "keys webhook-token show-status": "keys webhook-token show",
		"keys webhook-token revoke": "keys webhook-token delete",
		"secrets rm":                "secrets delete", "permissions set": "permissions update", "wiki get": "wiki show",
		"skills new":     "skills create",
		"sessions erase": "sessions delete", "files up": "files upload", "files down": "files download", "config print": "config list",
		"approval list": "approvals list", "session show": "sessions show", "key create": "keys create", "workspaces list": "workspace list",
	} {
		if old := sh.must(append(strings.Fields(before), "--help")...); old != sh.must(append(strings.Fields(now), "--help")...) {
			t.Errorf("parley %s is not parley %s:\n%s", before, now, old)
		}
		for _, path := range commands(t, sh, strings.Fields(before)[0]) {
			if strings.Join(path, " ") == before && strings.Contains(before, " ") && strings.Fields(before)[0] == strings.Fields(now)[0] {
				t.Errorf("the help lists parley %s", before)
			}
		}
	}
}

// TestEveryCommandThatPrintsTakesJSON walks the tree of commands. A command without --json has another
// format of its own, or is listed here.
func TestEveryCommandThatPrintsTakesJSON(t *testing.T) {
	t.Parallel()
	own := "serve runner listen mcp completion-bash completion-fish completion-powershell completion-zsh help exit-codes"
	sh := shell{t: t, dir: t.TempDir()}
	n := 0
	for _, path := range commands(t, sh) {
		help := sh.must(append(path, "--help")...)
		name := strings.Join(path, "-")
		if strings.Contains(help, "\nCommands:\n") || slices.Contains(strings.Fields(own), name) {
			continue
		}
		if n++; !regexp.MustCompile(`--(json|output|format)\b`).MatchString(help) {
			t.Errorf("parley %s prints output and has no --json", strings.Join(path, " "))
		}
	}
	if n < 50 {
		t.Errorf("only %d commands print something", n)
	}
}

// TestChangesAreReportedAsJSON runs commands that change something with --json.
func TestChangesAreReportedAsJSON(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	fileOf(t, sh, "page.md", "text")
	for _, c := range []struct{ line, member string }{
		{"workspace create sales", "slug"}, {"workspace update sales --max-turns 9", "max_turns"}, {"workspace delete sales --yes",
			"workspace_id"},
		{"keys create --name x", "key"}, {"keys webhook-token create", "key"}, {"keys webhook-token delete --yes", "key_id"},
		{"callbacks secret", "secret"}, {"callbacks secret --rotate", "secret"}, {"vault key", "key"}, {"vault rotate", "rewrapped"},
		{"wiki put wiki/page.md page.md", "version"}, {"wiki put notes/ page.md page.md", "documents"}, {"wiki sync .", "unchanged"},
		{"wiki show wiki/page.md", "content"}, {"wiki delete wiki/page.md --yes", "path"},
		{"secrets set TOKEN --host example.com --no-value", "has_value"}, {"secrets delete TOKEN --yes", "name"},
		{"permissions update bash deny", "rule"}, {"permissions reset bash", "tool"}, {"egress create example.com", "host"},
		{"budget update workspace --max-tokens 5", "max_tokens"}, {"budget delete workspace", "kind"}, {"egress public on", "public"},
		{"egress delete example.com", "host"}, {"allowlist create wiki_write(a/**)", "pattern"},
		{"skills create jam", "file"}, {"skills lint jam", "problems"}, {"skills push jam", "version"}, {"skills pull jam --to out", "file"},
		{"skills publish jam", "active"}, {"skills archive jam", "name"}, {"migrate up", "result"}, {"ready", "url"},
	} {
		out, errs, code := sh.run(append(strings.Fields(c.line), "--json")...)
		var got struct{ Data json.RawMessage }
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || errs != "" {
			t.Errorf("parley %s --json: exit code %d, stdout %q, stderr %q", c.line, code, out, errs)
		} else if !strings.Contains(string(got.Data), `"`+c.member+`":`) {
			t.Errorf("parley %s --json prints no %s: %s", c.line, c.member, out)
		}
	}
}

// verbs are the imperatives that the short help begins with.
const verbs = "accept add allow apply archive cancel change check compare continue create delete deny download edit encrypt export " +
	"follow fork forward generate list manage " +
	"pause print provide publish redeliver remove replace respond restore resume revoke run send set show start store update upload use " +
	"watch write"

// TestHelpIsOneLinePerCommand reads every line of the lists of commands: an imperative verb in lower
// case, no full stop.
func TestHelpIsOneLinePerCommand(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir()}
	for _, path := range commands(t, sh) {
		_, list, _ := strings.Cut(sh.must(append(path, "--help")...), "\nCommands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			_, short, _ := strings.Cut(strings.TrimSpace(line), " ")
			if short = strings.TrimSpace(short); short == "" || strings.HasSuffix(short, ".") || strings.ContainsAny(short, ";") ||
				short[0] < 'a' || short[0] > 'z' {
				t.Errorf("parley %s: %q", strings.Join(path, " "), line)
			}
			if verb, _, _ := strings.Cut(short, " "); !slices.Contains(strings.Fields(verbs), strings.TrimSuffix(verb, ",")) {
				t.Errorf("parley %s: %q does not begin with a verb that help uses", strings.Join(path, " "), short)
			}
		}
	}
	if out := sh.must("completion", "bash"); !strings.Contains(out, "bash completion") {
		t.Errorf("parley completion bash prints %.200s", out)
	}
}

func TestWorkspaceShow(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t)}}
	sh.must("workspace", "create", "sales", "--instructions", "You help the sales team.")
	out := sh.must("workspace", "show", "sales")
	zone, _ := time.Now().Zone()
	for _, want := range []string{"name                 sales\n", "storage              0.0 of 10240 MiB\n", "\nYou help the sales team.\n",
		time.Now().Format("2006-01-02 ")} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	if !strings.Contains(out, " "+zone+"\n") {
		t.Errorf("no time in the zone %s in %s", zone, out)
	}
	if out := sh.must("workspace", "show", "sales", "--json"); !strings.Contains(out, `"storage_quota": 10737418240`) {
		t.Errorf("as JSON: %s", out)
	}
	if _, errs, code := sh.run("workspace", "show", "none"); code != 2 || !strings.Contains(errs, "none") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
