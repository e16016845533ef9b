package e2e_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestReadmeTranscript runs every console command of the README and the quickstart in one
// shell and compares the output with the pages. "..." matches any text, and blanks match any
// number of blanks.
func TestReadmeTranscript(t *testing.T) {
	t.Parallel()
	var steps []step
	for _, page := range []string{"README.md", quickstart} {
		steps = append(steps, transcript(readPage(t, page))...)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t) // its database is the development database
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(dir, "bin", "parley")); err != nil {
		t.Fatal(err)
	}
	dev := exec.Command(binary, "serve", "--dev", "--listen", "127.0.0.1:0")
	dev.Dir = dir
	dev.Env = append(environ(), "DATABASE_URL="+w.dsn, "PARLEY_DURABILITY=off")
	dev.Stdout, dev.Stderr = t.Output(), t.Output()
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		_ = wait.Result(t, "the end of the server", dev.Wait)
	})
	wait.For(t, "the key is written", func() bool {
		_, err := os.Stat(filepath.Join(dir, ".parley", "dev.env"))
		return err == nil
	})
	sh := exec.Command("bash", "-c", "source .parley/dev.env && until bin/parley ready 2>/dev/null; do sleep 0.1; done")
	sh.Dir, sh.Env = dir, environ()
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("wait for the server: %v\n%s", err, out)
	}

	var script strings.Builder
	script.WriteString("set -u\n")
	if len(steps) < 20 {
		t.Fatalf("the pages have only %d commands", len(steps))
	}
	for _, s := range steps {
		script.WriteString(s.command + "\nprintf '\\n%s\\n' '" + mark + "'\n")
	}
	shell := exec.Command("bash", "-e", "-c", script.String())
	shell.Dir, shell.Env = dir, environ()
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, got := range strings.Split(string(out), mark)[:len(steps)] {
		if want := steps[i].output; !pattern(want).MatchString(squeeze(got)) {
			t.Errorf("$ %s\nprints\n%s\nthe page has\n%s", steps[i].command, got, want)
		}
	}
}

// TestReadmeInProduction runs the commands of the page about production, and sends a message
// with the key that they create.
func TestReadmeInProduction(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	found := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(readPage(t, "docs/start/production.md"))
	if found == nil {
		t.Fatal("the page has no commands for production")
	}
	dsn := dbtest.DSN(t)
	script := strings.NewReplacer("postgres://parley:…@db/parley", "'"+dsn+"'", "\nparley serve", "\nexec parley serve").Replace(found[1])
	if !strings.Contains(script, dsn) || !strings.Contains(script, "exec parley serve") {
		t.Fatalf("other commands than expected:\n%s", script)
	}
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "parley")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "acme.md"), []byte("Be brief."), 0o600); err != nil {
		t.Fatal(err)
	}
	shell, said := exec.Command("bash", "-eu", "-c", script), &record{}
	shell.Dir = dir
	shell.Env = append(environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_DURABILITY=off")
	out := io.MultiWriter(t.Output(), said)
	shell.Stdout, shell.Stderr = out, out
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		_ = shell.Wait()
		close(gone)
	}()
	t.Cleanup(func() {
		_ = shell.Process.Signal(syscall.SIGTERM)
		wait.Receive(t, "the end of the connection", gone)
	})
	ready := regexp.MustCompile(`msg=ready url=(\S+)`)
	var url string
	wait.For(t, "the server is ready", func() bool {
		select {
		case <-gone:
			t.Fatal("the commands came to an end")
		default:
		}
		m := ready.FindSubmatch(said.bytes())
		if m != nil {
			url = string(m[1])
		}
		return m != nil
	})
	send := exec.Command(binary, "send", "--url", url, "--workspace", "acme", "What is 12*7+3?")
	key, err := os.ReadFile(filepath.Join(dir, "backend.key"))
	if err != nil {
		t.Fatal(err)
	}
	send.Env = append(environ(), "PARLEY_API_KEY="+strings.TrimSpace(string(key)))
	if answer, err := send.CombinedOutput(); err != nil || !strings.Contains(string(answer), "87") {
		t.Errorf("%v\n%s", err, answer)
	}
}

// TestReadmeKillsTheServerAlone matches the pkill pattern of the quickstart against command lines
// of processes that run beside the server.
func TestReadmeKillsTheServerAlone(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile(`pkill (.*?);`).FindStringSubmatch(readPage(t, quickstart))
	if found == nil {
		t.Fatal("the quickstart has no pkill")
	}
	name, ok := strings.CutPrefix(found[1], "-9 -f '")
	if !ok {
		t.Fatalf("pkill %s", found[1])
	}
	kills := regexp.MustCompile(strings.TrimSuffix(name, "'"))
	for line, want := range map[string]bool{
		"bin/parley serve --dev":             true,
		"parley serve":                       true,
		`bin/parley send count slowly to 50`: false,
		`parley-postgres-guard {"Dir":"/home/me/parley/.parley/pg"}`: false,
		"/usr/bin/postgres -D /home/me/parley/.parley/pg/data":       false,
		"make run":                  false,
		"vim internal/cli/serve.go": false,
	} {
		if kills.MatchString(line) != want {
			t.Errorf("pkill %s and %q: %v", found[1], line, !want)
		}
	}
}

const quickstart = "docs/start/quickstart.md"

// readPage reads a page by its path in the repository.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const mark = "--- end of command ---"

type step struct{ command, output string }

// transcript reads the console blocks of a Markdown text.
func transcript(markdown string) []step {
	var steps []step
	inside := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSuffix(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && isCommand:
			steps = append(steps, step{command: command})
		case inside:
			steps[len(steps)-1].output += line + "\n"
		}
	}
	return steps
}

var blanks = regexp.MustCompile(`\s+`)

func squeeze(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }

func pattern(want string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(squeeze(want))
	return regexp.MustCompile(`(?s)^` + strings.ReplaceAll(quoted, `\.\.\.`, `.*`) + `$`)
}
