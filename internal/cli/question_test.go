package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/wait"
)

// writes is a message whose turn writes a wiki page.
const writes = `@call wiki_write {"page":"tea","content":"At four."}` + "\n@say Done."

// asking is a world whose agents need an approval to write, and may request TOKEN.
func asking(t *testing.T, settings ...string) (shell, *server) {
	t.Helper()
	sh, srv, _ := world(t, settings...)
	sh.must("permissions", "set", "wiki_write", "ask")
	sh.must("secrets", "set", "TOKEN", "--host", "a.example.com", "--no-value")
	return sh, srv
}

// scoped returns the shell with a key of these scopes.
func (s shell) scoped(scopes string) shell {
	s.t.Helper()
	key := s.must("keys", "create", "--name", scopes, "--scope", scopes)
	s.environ = append(append([]string{}, s.environ...), "PARLEY_API_KEY="+strings.TrimSpace(key))
	return s
}

// timeLeft returns the request that a command has left open, from the first line on stderr.
func timeLeft(t *testing.T, stderr string) (ask event.InputRequired) {
	t.Helper()
	line, _, _ := strings.Cut(stderr[strings.Index(stderr, "{"):], "\n")
	if err := json.Unmarshal([]byte(line), &ask); err != nil {
		t.Fatalf("%v in %s", err, stderr)
	}
	return ask
}

func TestAQuestionIsLeftOpenWhereNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	for _, output := range []string{"text", "json", "stream-json"} {
		out, errs, code := sh.scoped("chat").run("send", "--output", output, writes)
		if code != 3 || strings.Contains(out, "Done.") || output == "json" && !strings.Contains(out, `"error":"input_required"`) {
			t.Fatalf("%s: exit code %d, %s%s", output, code, out, errs)
		}
		id := timeLeft(t, errs).ApprovalID.String()
		if got := sh.must("approvals", "list"); !strings.Contains(got, id) || !strings.Contains(got, "write wiki page tea") {
			t.Errorf("%s: the list has no %s: %s", output, id, got)
		}
		if got := sh.must("sessions", "list"); !strings.Contains(got, "waits for approval") {
			t.Errorf("%s: sessions: %s", output, got)
		}
		_, command, ok := strings.Cut(errs, "Resume it: parley ")
		if !ok {
			t.Fatalf("%s: no way back: %s", output, errs)
		}
		sh.must("approvals", "allow", id)
		if rest := sh.must(strings.Fields(command)...); output != "json" && rest != "Done.\n" {
			t.Errorf("%s: the rest is %q", output, rest)
		}
		if _, errs, code := sh.run("approvals", "allow", id); code != 0 ||
			!strings.Contains(errs, "Decided before: allowed. See the result: parley sessions show ") || strings.Contains(errs, "continues") {
			t.Errorf("%s: allowed again: exit code %d, %s", output, code, errs)
		}
		if got := sh.must("approvals", "show", id); !strings.Contains(got, "allowed by the key ") ||
			!strings.Contains(got, "┃   content: At four.") {
			t.Errorf("%s: shown as %s", output, got)
		}
	}
	if got := sh.must("approvals", "list", "--json"); !strings.Contains(got, `"data": []`) {
		t.Errorf("waiting: %s", got)
	}
}

func TestApproveSaysWhoAnswers(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	two := `@call wiki_write {"page":"a/b","content":"x"} wiki_write {"page":"c","content":"y"}` + "\n@say Done."
	for _, c := range []struct {
		name    string
		message string
		approve []string
		code    int
		says    string
	}{
		{"never", writes, []string{"never"}, 6, "Denied, as --approve says"},
		{"a pattern", writes, []string{"pattern:wiki_write(tea)"}, 0, "Allowed, as --approve says"},
		{"another pattern", writes, []string{"pattern:wiki_write(coffee)"}, 3, "approvals allow"},
		{"a pattern, else never", writes, []string{"pattern:wiki_write(coffee)", "never"}, 6, "Denied"},
		{"half of it", two, []string{"pattern:wiki_write(a/**)"}, 3, `"operations"`},
		{"all of it", two, []string{"pattern:wiki_write(a/**)", "pattern:wiki_write(c)"}, 0, "Allowed"},
		{"nobody here", writes, []string{"ask"}, 3, `"decide_url"`},
		{"no pattern", writes, []string{"pattern:wiki_write"}, 2, "parentheses"},
		{"no rule", writes, []string{"always"}, 2, "ask, never, wait or pattern:PATTERN"},
		{"two rules", writes, []string{"never", "wait"}, 2, "never and wait"},
	} {
		for _, output := range []string{"text", "json"} {
			args := []string{"send", "--output", output}
			for _, a := range c.approve {
				args = append(args, "--approve", a)
			}
			out, errs, code := sh.run(append(args, c.message)...)
			if code != c.code || !strings.Contains(errs, c.says) {
				t.Errorf("%s, %s: exit code %d, %s%s", c.name, output, code, out, errs)
			}
			if ended := c.code == 0 || c.code == 6; ended != strings.Contains(out, "Done.") ||
				output == "json" && ended != strings.Contains(out, `"success":true`) {
				t.Errorf("%s, %s: %s", c.name, output, out)
			}
		}
	}
	if _, told, _ := sh.run("send", "--approve", "never", writes); !strings.Contains(told,
		"This was denied: The sender of the message denies every approval.") {
		t.Errorf("the agent receives\n%s", told)
	}
	if got := sh.must("wiki", "get", "wiki/tea.md"); got != "At four." {
		t.Errorf("the page is %q", got)
	}
	if got := sh.must("allowlist", "list", "--json"); !strings.Contains(got, `"data": []`) {
		t.Errorf("a pattern of --approve stays: %s", got)
	}
}

func TestSomebodyElseAnswers(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	asked := regexp.MustCompile(`approvals allow (\S+)`)
	for _, c := range []struct {
		output, command string
		code            int
		says            string
	}{
		{"text", "allow", 0, "Answered elsewhere: allowed."},
		{"text", "deny", 6, "Answered elsewhere: denied."},
		{"json", "allow", 0, "Answered elsewhere: allowed."},
		{"json", "deny", 6, ""},
	} {
		k := sh.start("send", "--approve", "wait", "--output", c.output, writes)
		k.errs.wait(t, "(or deny).")
		sh.must("approvals", c.command, asked.FindStringSubmatch(k.errs.String())[1])
		if code := wait.Receive(t, "the exit code", k.code); code != c.code || !strings.Contains(k.errs.String(), c.says) ||
			!strings.Contains(k.out.String(), "Done.") {
			t.Errorf("%s, %s: exit code %d, %s%s", c.output, c.command, code, k.out, k.errs)
		}
	}
}

func TestAnAnswerIsThatOfItsOwnTurn(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	first := sh.start("send", "--caller", "alice", "--approve", "wait", "--output", "json", writes)
	first.errs.wait(t, "(or deny).")
	sh.must("send", "--caller", "alice", "--if-busy", "enqueue", "--callback", "https://listen.invalid/", "@say Second.")
	sh.must("approvals", "allow", regexp.MustCompile(`approvals allow (\S+)`).FindStringSubmatch(first.errs.String())[1])
	if code := wait.Receive(t, "the exit code", first.code); code != 0 || !strings.Contains(first.out.String(), `"output":"Done."`) {
		t.Errorf("exit code %d, %s", code, first.out)
	}
}

func TestNobodyAnswersInTime(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t, "PARLEY_APPROVAL_WINDOW=1s", "PARLEY_CALLS_PER_MINUTE=0")
	for _, output := range []string{"text", "json"} {
		if out, errs, code := sh.run("send", "--approve", "wait", "--output", output, writes); code != 6 ||
			!strings.Contains(errs, "The approval has expired") || !strings.Contains(out, "Done.") {
			t.Errorf("%s: exit code %d, %s%s", output, code, out, errs)
		}
	}
	_, errs, _ := sh.run("send", writes)
	id := timeLeft(t, errs).ApprovalID.String()
	for !strings.Contains(sh.must("approvals", "list", "--status", "expired"), id) {
	}
	if _, errs, code := sh.run("approvals", "allow", id); code != 6 || !strings.Contains(errs, "The approval expired at ") {
		t.Errorf("too late: exit code %d, %s", code, errs)
	}
}

func TestTheFirstAnswerStands(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	ask := func() string {
		_, errs, _ := sh.run("send", writes)
		return timeLeft(t, errs).ApprovalID.String()
	}
	denied, allowed, canceled := ask(), ask(), ask()
	if _, errs, code := sh.run("approvals", "deny", denied, "--reason", "Not before Monday."); code != 0 ||
		!regexp.MustCompile(`^Denied. The turn continues: parley sessions tail [0-9a-f-]{36} --after 0\n$`).MatchString(errs) {
		t.Errorf("denied: exit code %d, %q", code, errs)
	}
	sh.must("approvals", "allow", allowed, "--pattern", "wiki_write(tea)")
	var shown struct {
		Data struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("approvals", "show", canceled, "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	sh.must("sessions", "cancel", shown.Data.SessionID)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"approvals deny " + denied, 0, "Decided before: denied"},
		{"approvals allow " + denied, 6, "The first answer stands"},
		{"approvals allow " + allowed, 0, "Decided before: allowed"},
		{"approvals deny " + allowed, 1, "The first answer stands"},
		{"approvals allow " + canceled, 8, "canceled"},
		{"approvals allow 0192f0aa-0000-7000-8000-000000000001", 2, "No approval"},
		{"secret skip " + allowed, 2, "No secret request"},
		{"approvals show x", 2, "No such approval"},
		{"approvals list --status open", 2, "status"},
		{"sessions cancel " + shown.Data.SessionID, 0, "No turn is in progress"},
	} {
		if _, errs, code := sh.run(strings.Fields(c.args)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errs)
		}
	}
	if got := sh.must("allowlist", "list"); !strings.Contains(got, "wiki_write(tea)") {
		t.Errorf("the allow-list: %s", got)
	}
	if out := sh.must("send", writes); out != "Done.\n" {
		t.Errorf("a call covered by the allow-list asks: %s", out)
	}
	if got := sh.must("approvals", "show", denied); !strings.Contains(got, "reason    Not before Monday.") {
		t.Errorf("shown as %s", got)
	}
}

const wants = `@call request_secret {"key_name":"TOKEN","reason":"to read the issues"}` + "\n@say Done."

func TestASecretIsGivenFromElsewhere(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	said := ""
	for _, c := range []struct {
		args   string
		stdin  string
		code   int
		status string
	}{
		{"secret provide", token + "\n", 0, "provided"},
		{"secret skip", "", 0, "skipped"},
		{"secret provide", "abc", 2, "pending"},
		{"secret provide", "\xff\xfe not text", 2, "pending"},
		{"approvals allow", "", 2, "pending"},
	} {
		k := sh.start("send", "--approve", "wait", wants)
		k.errs.wait(t, "(or skip).")
		_, rest, _ := strings.Cut(k.errs.String(), "parley secret provide ")
		id, _, _ := strings.Cut(rest, " ")
		out, errs, code := sh.pipe(strings.NewReader(c.stdin), append(strings.Fields(c.args), id)...)
		said += out + errs
		if got := sh.must("approvals", "show", id); code != c.code || !strings.Contains(got, "status    "+c.status) ||
			!strings.Contains(got, "> to read the issues") {
			t.Errorf("%s: exit code %d, %s%s", c.args, code, errs, got)
		}
		if c.status == "pending" {
			k.interrupts <- os.Interrupt
		}
		code = wait.Receive(t, "the exit code", k.code)
		if want := map[bool]int{true: 130, false: 0}[c.status == "pending"]; code != want {
			t.Errorf("%s: send ended with %d: %s", c.args, code, k.errs)
		}
		said += k.out.String() + k.errs.String()
	}
	if _, errs, code := sh.scoped("chat,sessions:read").run("send", "--approve", "never", wants); code != 3 ||
		!strings.Contains(errs, `"secret_url"`) {
		t.Errorf("--approve never: exit code %d, %s", code, errs)
	}
	if strings.Contains(said, token[:8]) {
		t.Errorf("the secret shows: %s", said)
	}
}

func TestTheExitCodeTellsWhoEndedTheTurn(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if _, errs, code := sh.run("send", "--max-seconds", "1", "@wait 10m"); code != 7 || !strings.Contains(errs, "timed_out") {
		t.Errorf("expired: exit code %d, %s", code, errs)
	}
	for _, output := range []string{"text", "json"} {
		k := sh.start("send", "--caller", output, "--output", output, "@wait 10m")
		waitThinking(t, sh, output)
		var list struct {
			Data []struct {
				SessionID string `json:"session_id"`
			}
		}
		if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--caller", output, "--json")), &list); err != nil {
			t.Fatal(err)
		}
		sh.must("sessions", "cancel", list.Data[0].SessionID)
		if code := wait.Receive(t, "the exit code", k.code); code != 8 {
			t.Errorf("%s: cancelled elsewhere: exit code %d, %s", output, code, k.errs)
		}
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	schema := `{"type":"object","properties":{"author":{"type":"string"}},"required":["author"]}`
	for name, text := range map[string]string{"schema.json": schema, "broken.json": "{"} {
		if err := os.WriteFile(filepath.Join(sh.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, errs, code := sh.pipe(strings.NewReader("a file"), "files", "up", "schema.json"); code != 0 {
		t.Fatal(out, errs)
	}
	busy := sh.start("send", "--caller", "busy", "@wait 10m")
	waitThinking(t, sh, "busy")
	for _, c := range []struct {
		args []string
		code int
		says string // on stderr
	}{
		{[]string{"--max-turns", "1", `@call wiki_read {"page":"tea"}` + "\n@say x"}, 1, "max_turns_exceeded"},
		{[]string{"--max-turns", "0", "x"}, 2, "from 1"},
		{[]string{"--max-turns", "-1", "x"}, 2, "--max-turns cannot be -1."},
		{[]string{"--max-turns", "999", "x"}, 2, "max_turns"},
		{[]string{"--max-cost", "-1", "x"}, 2, "max_cost_usd"},
		{[]string{"--max-cost", "0", "@say x"}, 1, "budget_exceeded"},
		{[]string{"--max-cost", "1.5", "@say x"}, 0, ""},
		{[]string{"--secret-input", "NOPE", "x"}, 2, "NOPE"},
		{[]string{"--secret-input", "TOKEN", "@say x"}, 0, ""},
		{[]string{"--attach", "nope", "x"}, 2, "--attach cannot be"},
		{[]string{"--callback", "http://insecure.example", "x"}, 2, "https"},
		{[]string{"--callback", "https://listen.invalid/", "@say x"}, 0, "parley callbacks show "},
		{[]string{"--schema", "broken.json", "x"}, 2, "JSON Schema"},
		{[]string{"--schema", "none.json", "x"}, 2, "none.json"},
		{[]string{"--if-busy", "later", "x"}, 2, "reject, enqueue, interrupt"},
		{[]string{"--caller", "busy", "x"}, 1, "--if-busy"},
		{[]string{"--caller", "busy", "--if-busy", "enqueue", "--callback", "https://listen.invalid/", "@say x"}, 0, "queued"},
		{[]string{"--caller", "busy", "--if-busy", "interrupt", "@say x"}, 0, ""},
	} {
		if out, errs, code := sh.run(append([]string{"send"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%.80q: exit code %d, %s%s", c.args, code, out, errs)
		}
	}
	if code := wait.Receive(t, "the exit code", busy.code); code != 8 {
		t.Errorf("the interrupted message: exit code %d, %s", code, busy.errs)
	}
	var body struct {
		Data struct {
			CallbackID string `json:"callback_id"`
		}
	}
	if out := sh.must("send", "--callback", "https://listen.invalid/", "--output", "json", "@say x"); json.Unmarshal([]byte(out),
		&body) != nil || body.Data.CallbackID == "" {
		t.Errorf("a callback as JSON: %s", out)
	}
	for _, output := range []string{"text", "json"} {
		var answer map[string]any
		out := sh.must("send", "--schema", "schema.json", "--output", output, "Who wrote it?")
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatalf("%s: %v in %s", output, err, out)
		}
		if output == "json" {
			answer, _ = answer["structured_result"].(map[string]any)
		}
		if _, ok := answer["author"].(string); !ok {
			t.Errorf("%s: not in the schema: %s", output, out)
		}
	}
}
