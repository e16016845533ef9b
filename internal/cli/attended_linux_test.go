package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

func TestWhoeverIsAtTheTerminalAnswers(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)

	p := sh.attend("send", "Write it down.\n"+writes)
	p.sees("Approval needed, until ")
	p.sees("┃   page: tea")
	p.sees("┃   content: At four.")
	p.sees("[a]llow  [p]attern wiki_write(tea)  [d]eny REASON  [l]ater: ")
	p.types("\n")
	p.sees("Type a, p, d or l.")
	p.types("yes\n")
	p.sees("Type a, p, d or l.")
	p.types("a\n")
	p.ends(0)
	if p.out.String() != "Done.\n" {
		t.Errorf("stdout is %q", p.out)
	}

	p = sh.attend("send", writes)
	p.sees("[l]ater: ")
	p.types("d Gr\xfc\xdfe\n")
	p.sees("That is not UTF-8. Type it again.")
	p.sees("[l]ater: ")
	p.types("d Not before Monday.\n")
	p.ends(6)
	if !strings.Contains(sh.must("approvals", "list", "--status", "denied", "--json"), "Not before Monday.") {
		t.Errorf("no reason: %s", p.screen)
	}

	p = sh.attend("send", "--output", "json", writes)
	p.sees("[l]ater: ")
	p.types("l\n")
	p.ends(3)
	p.sees("(or deny). Resume it: parley sessions tail ")
	if !strings.Contains(p.out.String(), `"error":"input_required"`) {
		t.Errorf("stdout is %s", p.out)
	}
	session := regexp.MustCompile(`tail (\S+)`).FindStringSubmatch(p.screen.String())[1]
	p = sh.attend("sessions", "tail", session)
	p.sees("[l]ater: ")
	p.types("p bash(ls *)\n")
	p.sees("matches none of the operations")
	p.sees("[l]ater: ")
	p.types("p\n") // as the prompt suggests
	p.ends(0)
	if out := sh.must("send", writes); out != "Done.\n" {
		t.Errorf("the pattern does not stay: %s", out)
	}
}

func TestNobodyIsAskedAgainstTheirWill(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send", "--no-input", writes)
	p.ends(3)
	if strings.Contains(p.screen.String(), "[l]ater") {
		t.Errorf("--no-input asks: %s", p.screen)
	}
	p = sh.attend("send", "--quiet", "--output", "stream-json", writes)
	p.sees("[l]ater: ") // a question is printed even with --quiet
	p.types("a\n")
	p.ends(0)
	if lines := strings.Split(strings.TrimSpace(p.out.String()), "\n"); !strings.HasPrefix(lines[len(lines)-1], `{"event":"done"`) {
		t.Errorf("the last line is %s", lines[len(lines)-1])
	}
}

func TestWhatIsTypedBeforeTheQuestionIsNoAnswer(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send", writes)
	p.types("a\na\na\n")
	p.sees("[l]ater: ")
	p.types("d\n")
	p.ends(6)
}

func TestAQuestionClosesWhenItIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send", writes+"\n@call wiki_write {\"page\":\"cake\",\"content\":\"At five.\"}\n@say Eaten.")
	id := func() string {
		p.sees("[l]ater: ")
		all := regexp.MustCompile(`needed, until \S+ \S+ ([0-9a-f-]{36})`).FindAllStringSubmatch(p.screen.String(), -1)
		return all[len(all)-1][1]
	}
	sh.must("approvals", "allow", id())
	p.sees("Answered elsewhere: allowed.")
	sh.must("approvals", "deny", id())
	p.sees("Answered elsewhere: denied.")
	p.ends(6)
	if p.out.String() != "Done.\n\nEaten.\n" {
		t.Errorf("stdout is %q", p.out)
	}
}

func TestAnAnswerHereSurvivesOneElsewhere(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send", wants+"\n"+writes)
	p.sees("[p]rovide  [s]kip  [l]ater: ")
	id := regexp.MustCompile(`needed, until \S+ \S+ ([0-9a-f-]{36})`).FindStringSubmatch(p.screen.String())[1]
	sh.must("secret", "skip", id)
	p.sees("Answered elsewhere: skipped.")
	p.sees("[d]eny REASON  [l]ater: ") // the line answers the question on the screen
	p.types("a\n")
	p.ends(0)
}

func TestASecretIsTypedUnseen(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send", wants)
	p.sees("┃ secret TOKEN")
	p.sees("> to read the issues")
	p.sees("[l]ater: ")
	p.types("p\n")
	p.sees("Value of TOKEN (not shown): ")
	silent(t, p.terminal)
	p.types("abc\r")
	p.sees("at least 4 bytes")
	p.sees("[l]ater: ")
	p.types("provide\n")
	p.sees("(not shown): ")
	silent(t, p.terminal)
	p.types("wrong\x15" + token + "x\x7f\r") // Ctrl-U, and the x deleted
	p.ends(0)
	if strings.Contains(p.screen.String(), token[:8]) || !strings.Contains(sh.must("secrets", "list"), "stored") {
		t.Errorf("the terminal shows %q", p.screen)
	}

	p = sh.attend("send", wants)
	p.sees("[l]ater: ")
	p.types("s\n")
	p.ends(0)

	p = sh.attend("send", wants)
	p.sees("[l]ater: ")
	p.types("p\n")
	p.sees("(not shown): ")
	silent(t, p.terminal)
	p.types("secr\x03") // Ctrl-C arrives as a key in this mode
	p.sees("Canceled.")
	p.ends(130)

	id := timeLeft(t, stderrOf(sh.run("send", wants))).ApprovalID.String()
	p = sh.attend("secret", "provide", id)
	p.sees("Value of TOKEN (not shown): ")
	silent(t, p.terminal)
	p.types(token + "\r")
	p.sees("Provided.")
	p.ends(0)
}

func stderrOf(_, errs string, _ int) string { return errs }

func TestWhatCannotBeSeenIsWrittenOut(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send",
		`@call wiki_write {"page":"tea","content":"At \u202eruof\u202c\u200b.\u001b[2K\nAnd\u00a0at five.\n┃   page: other"}`)
	p.sees(`┃   │ At \u202eruof\u202c\u200b.\u001b[2K`)
	p.sees(`┃   │ And\u00a0at five.`)
	p.sees("┃   │ ┃   page: other")
	p.sees("Look twice.")
	p.sees("[l]ater: ")
	p.interrupts <- os.Interrupt
	p.sees("Canceled.")
	p.ends(130)
}

func TestApprovalsWatchAsks(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	lines := sh.start("approvals", "watch")
	objects := sh.start("approvals", "watch", "--json")
	p := sh.attend("approvals", "watch")
	for _, watching := range []*watched{lines.errs, objects.errs, p.screen} {
		watching.wait(t, "Waiting for approvals")
	}
	first := sh.start("send", "--approve", "wait", writes)
	p.sees("┃   content: At four.")
	p.sees("[l]ater: ")
	p.types("a\n")
	p.sees("Allowed.")
	if code := wait.Receive(t, "the exit code", first.code); code != 0 {
		t.Errorf("send: exit code %d, %s", code, first.errs)
	}
	second := sh.start("send", "--approve", "wait", wants)
	p.sees("┃ secret TOKEN")
	p.sees("[l]ater: ")
	lines.out.wait(t, "  secret  secret TOKEN: to read the issues\n")
	objects.out.wait(t, `"key_name":"TOKEN"`)
	second.errs.wait(t, "(or skip).")
	_, id, _ := strings.Cut(second.errs.String(), "provide ")
	id, _, _ = strings.Cut(id, " ")
	sh.must("secret", "skip", id)
	p.sees("Another client decided it, or it expired.")
	third := sh.start("send", "--approve", "wait", writes)
	p.sees("[d]eny REASON  [l]ater: ")
	p.types("l\n")
	third.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", third.code); code != 130 {
		t.Errorf("send: exit code %d, %s", code, third.errs)
	}
	for interrupts, code := range map[chan os.Signal]chan int{p.interrupts: p.code, lines.interrupts: lines.code,
		objects.interrupts: objects.code} {
		interrupts <- os.Interrupt
		if got := wait.Receive(t, "the exit code", code); got != 0 {
			t.Errorf("watch: exit code %d", got)
		}
	}
}

func TestOldQuestionsAreNotAskedAgain(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	p := sh.attend("send", "--output", "json", writes+"\n@call wiki_write {\"page\":\"cake\",\"content\":\"At five.\"}\n@say Eaten.")
	p.sees("┃   page: tea")
	p.sees("[l]ater: ")
	p.types("d\n")
	p.sees("┃   page: cake")
	p.sees("[l]ater: ")
	p.types("l\n")
	p.ends(3)
	p.sees("Resume it: parley ")
	if out := p.out.String(); strings.Count(out, "\n") != 1 || !strings.Contains(out, `"page":"cake"`) {
		t.Errorf("stdout is %s", out)
	}
	session := regexp.MustCompile(`tail (\S+)`).FindStringSubmatch(p.screen.String())[1]
	p = sh.attend("sessions", "tail", session)
	p.sees("┃   page: cake")
	p.sees("[l]ater: ")
	p.types("a\n")
	p.ends(6) // the first call was denied
	if strings.Contains(p.screen.String(), "page: tea") || p.out.String() != "Done.\n\nEaten.\n" {
		t.Errorf("asked again: %s%s", p.out, p.screen)
	}
}
