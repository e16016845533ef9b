package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestSendPrintsTheAnswerAloneOnStdout(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if _, errs, code := sh.pipe(strings.NewReader("# Tea\nAt four."), "wiki", "put", "wiki/tea.md"); code != 0 {
		t.Fatal(errs)
	}
	out, errs, code := sh.run("send", `@call wiki_read {"page":"tea"}`+"\n@say One two.")
	if out != "One two.\n" || code != 0 {
		t.Errorf("stdout %q, exit code %d", out, code)
	}
	for _, want := range []string{"→ wiki_read read wiki page tea\n", "← wiki_read # Tea (+1 line)\n", " out · $0", "builtin/guide"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr lacks %q: %s", want, errs)
		}
	}
	if out, errs, _ = sh.run("send", "--quiet", "@say Hush."); out != "Hush.\n" || errs != "" {
		t.Errorf("--quiet: stdout %q, stderr %q", out, errs)
	}
	if _, errs, _ = sh.run("send", "--verbose", `@call wiki_read {"page":"tea"}`); !strings.Contains(errs, "At four.") {
		t.Errorf("--verbose hides what the tool returned: %s", errs)
	}
}

func TestSendPutsStdinFirst(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	out, errs, code := sh.pipe(strings.NewReader("@say piped\n"), "send", "@say", "argument")
	if code != 0 || !strings.HasPrefix(out, "piped") || !strings.HasSuffix(out, "argument\n") {
		t.Errorf("stdout %q, exit code %d, %s", out, code, errs)
	}
	if _, _, code := sh.run("send"); code != 2 {
		t.Errorf("no message: exit code %d", code)
	}
	if out, errs, code := sh.pipe(strings.NewReader("@say Gr\xfc\xdfe\n"), "send"); code != 2 || out != "" ||
		!strings.Contains(errs, "is not UTF-8") {
		t.Errorf("Latin-1: stdout %q, exit code %d, %s", out, code, errs)
	}
	if out, errs, code := sh.run("send", "@say Gr\xfc\xdfe"); code != 2 || out != "" || !strings.Contains(errs, "is not UTF-8") {
		t.Errorf("Latin-1 as an argument: stdout %q, exit code %d, %s", out, code, errs)
	}
}

func TestSendJSONIsTheBlockingBody(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	out := sh.must("send", "--output", "json", "@say Yes.")
	var body map[string]any
	if err := json.Unmarshal([]byte(out), &body); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if body["success"] != true || body["output"] != "Yes." || body["error"] != nil || body["session_id"] == "" {
		t.Errorf("body %s", out)
	}
	out, _, code := sh.run("send", "--output", "json", "@error model_error")
	if err := json.Unmarshal([]byte(out), &body); err != nil || body["success"] != false || body["error"] != "model_error" || code != 1 {
		t.Errorf("a failed turn: exit code %d, %s", code, out)
	}
}

func TestSendStreamJSONIsOneFrameALine(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	lines := strings.Split(strings.TrimSpace(sh.must("send", "--output", "stream-json", "@say One two three.")), "\n")
	text := ""
	var kinds []string
	for _, line := range lines {
		var f struct {
			Event, ID string
			Data      struct{ Text string }
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.ID == "" {
			t.Fatalf("%v in %s", err, line)
		}
		text += f.Data.Text
		kinds = append(kinds, f.Event)
	}
	if kinds[0] != "open" || kinds[len(kinds)-1] != "done" || text != "One two three." {
		t.Errorf("frames %v, text %q", kinds, text)
	}
}

func TestExitCodesTellWhatHappened(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	with := func(environ ...string) shell {
		sh := sh
		sh.environ = append(append([]string{}, sh.environ...), environ...)
		return sh
	}
	for _, c := range []struct {
		name string
		sh   shell
		args []string
		code int
		says string
	}{
		{"answer", sh, []string{"send", "@say ok"}, 0, ""},
		{"failed turn", sh, []string{"send", "@error model_error"}, 1, "model_error"},
		{"overloaded model", sh, []string{"send", "@error model_overloaded"}, 1, "Send the message again."},
		{"no such session", sh, []string{"send", "--session", "0192f0aa-0000-7000-8000-000000000001", "hi"}, 2,
			"does not exist in this workspace"},
		{"no workspace", with("PARLEY_WORKSPACE=other"), []string{"send", "hi"}, 2, "PARLEY_WORKSPACE"},
		{"wrong key", with("PARLEY_API_KEY=prl_nonsense"), []string{"send", "hi"}, 4, "not valid"},
		{"no key", shell{t, t.TempDir(), nil}, []string{"send", "hi"}, 4, "PARLEY_API_KEY"},
		{"nobody listens", with("PARLEY_URL=http://127.0.0.1:1"), []string{"send", "hi"}, 5,
			"Cannot connect to 127.0.0.1:1: connection refused."},
		{"not ready", with("PARLEY_URL=http://127.0.0.1:1"), []string{"ready"}, 5, "connection refused"},
		{"ready", sh, []string{"ready"}, 0, ""},
	} {
		_, errs, code := c.sh.run(c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, want %d: %s", c.name, code, c.code, errs)
		}
		if lines := strings.Split(strings.TrimSpace(errs), "\n"); c.code != 0 && (len(lines) < 3 || !strings.Contains(errs, "parley: ")) {
			t.Errorf("%s: not what, why and what to do: %s", c.name, errs)
		}
	}
}

func TestACallerGoesOnWithTheSession(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("send", "--caller", "alice", "@say one")
	sh.must("send", "--caller", "alice", "@say two")
	sh.must("send", "@say alone")
	var list struct {
		Data []struct {
			CallerID     string `json:"caller_id"`
			MessageCount int    `json:"message_count"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--caller", "alice", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 1 || list.Data[0].MessageCount != 4 {
		t.Errorf("sessions of alice: %+v", list.Data)
	}
}

const slowAnswer = "@text 400 deltas at 100/s\n@say The end."

func TestCtrlCCancelsTheTurn(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	for _, output := range []string{"text", "json"} {
		k := sh.start("send", "--caller", output, "--output", output, "@wait 10m")
		waitThinking(t, sh, output)
		k.interrupts <- os.Interrupt
		if code := wait.Receive(t, "the exit code", k.code); code != 130 {
			t.Errorf("%s: exit code %d: %s", output, code, k.errs)
		}
		if got := sh.must("sessions", "list", "--caller", output); !strings.Contains(got, "canceled") {
			t.Errorf("%s: the turn still runs: %s", output, got)
		}
	}
}

func TestASecondCtrlCLeavesTheTurnRunning(t *testing.T) {
	t.Parallel()
	sh, srv, dsn := world(t, "PARLEY_DRAIN=0s")
	k := sh.start("send", slowAnswer)
	k.out.wait(t, "5")
	srv.end(t) // the cancel gets no response
	k.interrupts <- os.Interrupt
	k.errs.wait(t, "Canceling")
	k.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", k.code); code != 130 {
		t.Fatalf("exit code %d: %s", code, k.errs)
	}
	_, command, ok := strings.Cut(k.errs.String(), "Resume it: parley ")
	if !ok {
		t.Fatalf("no way back: %s", k.errs)
	}
	serve(t, dsn, strings.TrimPrefix(srv.url, "http://"))
	rest := sh.must(strings.Fields(command)...)
	if whole := strings.TrimSuffix(k.out.String(), "\n") + rest; whole != expected() {
		t.Errorf("both halves: %q", whole)
	}
}

// TestCtrlCBeforeTheMessageIsAccepted interrupts a message that the server does not take.
func TestCtrlCBeforeTheMessageIsAccepted(t *testing.T) {
	t.Parallel()
	sh, _, dsn := world(t)
	proxy, through := dbtest.Proxy(t, dsn)
	sh.environ = append(sh.environ, "PARLEY_URL="+serve(t, through, "127.0.0.1:0").url)
	proxy.Refuse(true)
	proxy.Cut()
	k := sh.start("send", "hello")
	k.errs.wait(t, "Trying again")
	if errs := k.errs.String(); strings.Contains(errs, "Try again") || strings.Contains(errs, "(503") {
		t.Errorf("the retry reads %q", errs)
	}
	k.interrupts <- os.Interrupt
	k.errs.wait(t, "Canceling as soon as the server has accepted the message")
	k.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", k.code); code != 130 || !strings.Contains(k.errs.String(), "may have accepted the message") {
		t.Fatalf("exit code %d: %s", code, k.errs)
	}
}

func TestAnAnswerSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	sh, srv, dsn := world(t, "PARLEY_DRAIN=0s")
	k := sh.start("send", slowAnswer)
	k.out.wait(t, "20.")
	srv.end(t)
	serve(t, dsn, strings.TrimPrefix(srv.url, "http://"))
	if code := wait.Receive(t, "the exit code", k.code); code != 0 || k.out.String() != expected() {
		t.Errorf("exit code %d, %q\n%s", code, k.out, k.errs)
	}
	if !strings.Contains(k.errs.String(), "Trying again") {
		t.Errorf("nothing broke: %s", k.errs)
	}
}

// expected is the text of slowAnswer.
func expected() string {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "%-11s ", fmt.Sprint(i)+strings.Repeat(".", 11-len(fmt.Sprint(i))))
	}
	return b.String() + "The end.\n"
}

func waitThinking(t *testing.T, sh shell, caller string) {
	t.Helper()
	for !strings.Contains(sh.must("sessions", "list", "--caller", caller), "thinking") {
		if t.Context().Err() != nil {
			t.Fatal("the turn never ran")
		}
	}
}

func TestWhoOnlyReadsCancelsNothing(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	whole := sh.start("send", "--caller", "alice", slowAnswer)
	whole.out.wait(t, "5")
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	k := sh.start("sessions", "tail", list.Data[0].SessionID)
	k.out.wait(t, "5")
	k.interrupts <- os.Interrupt
	code := wait.Receive(t, "the exit code", k.code)
	before, command, ok := strings.Cut(k.errs.String(), "Resume it: parley ")
	if code != 130 || !ok || !strings.HasSuffix(before, "The turn continues; parley sessions cancel "+list.Data[0].SessionID+" ends it. ") {
		t.Fatalf("exit code %d: %s", code, k.errs)
	}
	if rest := sh.must(strings.Fields(command)...); strings.TrimSuffix(k.out.String(), "\n")+rest != expected() {
		t.Errorf("both halves: %q and %q", k.out, rest)
	}
	if code := wait.Receive(t, "the exit code", whole.code); code != 0 || whole.out.String() != expected() {
		t.Errorf("the turn did not continue: exit code %d, %s", code, whole.errs)
	}
}
