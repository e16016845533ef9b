package cli_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAListGoesOnAsItSays runs the command that a list prints for its next page. It must work and
// keep the filters of the first page.
func TestAListGoesOnAsItSays(t *testing.T) {
	t.Parallel()
	sh, srv := asking(t)
	for range 2 {
		sh.callback(srv, "https://listen.invalid/")
		if _, errs, code := sh.run("send", writes); code != 3 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
	}
	for _, args := range [][]string{
		{"approvals", "list", "--status", "all"},
		{"approvals", "list"},
		{"sessions", "list", "--status", "completed"},
		{"callbacks", "list", "--status", "failed"},
	} {
		first, errs, code := sh.run(append(args, "--limit", "1")...)
		_, line, ok := strings.Cut(strings.TrimSpace(errs), "There are more: parley ")
		if code != 0 || !ok {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		words, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
		if err != nil {
			t.Fatalf("%v: %q: %v", args, line, err)
		}
		next := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
		if !strings.Contains(line, strings.Join(args[2:], " ")) {
			t.Errorf("%v prints as next command %q", args, line)
		}
		if second := sh.must(next...); second == first || strings.Count(second, "\n") != 2 {
			t.Errorf("%v: after\n%scomes\n%s", args, first, second)
		}
	}
}
