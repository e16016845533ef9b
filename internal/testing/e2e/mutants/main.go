// Mutants shows that the chaos harness finds bugs. It plants one bug after the other in a copy of a
// few files, builds the end-to-end tests with them and runs the seeds, crash points or probes that
// must fail. Then it makes the run that failed once more without the bug, which must pass. The files
// of the repository do not change: go build -overlay replaces them.
//
//	go run ./internal/testing/e2e/mutants            # all
//	go run ./internal/testing/e2e/mutants fence lock # some
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// edit replaces a text that occurs once in a file.
type edit struct{ file, from, to string }

// mutant is a planted bug and the test that must fail.
type mutant struct {
	name   string
	bug    string
	edits  []edit
	beside []edit   // changes that make the bug visible; the run without the bug has them too
	run    string   // the tests, as go test -run has it
	flags  []string // more arguments
}

func main() {
	if !checkAll() {
		os.Exit(1)
	}
}

func checkAll() (ok bool) {
	dir, err := os.MkdirTemp("", "parley-mutants-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	defer os.RemoveAll(dir)
	ok = true
	for _, m := range mutants {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], m.name) {
			continue
		}
		verdict, caught := m.check(dir)
		fmt.Printf("%-12s %s\n", m.name, verdict)
		ok = ok && caught
	}
	return ok
}

// check runs the tests with the bug, and the one that failed without it.
func (m mutant) check(dir string) (verdict string, ok bool) {
	with, err := buildTests(dir, m.name, slices.Concat(m.edits, m.beside))
	if err != nil {
		return fmt.Sprintf("NOT BUILT: %v", err), false
	}
	defer os.Remove(with)
	out, err := m.test(with, m.run)
	if err != nil {
		return fmt.Sprintf("NOT RUN: %v", err), false
	}
	caught := failedTest(out)
	if caught == "" {
		return fmt.Sprintf("MISSED: %s", m.bug), false
	}
	verdict = fmt.Sprintf("caught by %s, after %d runs: %s: %s", caught, len(passed.FindAll(out, -1))+1, m.bug, firstViolation(out))
	without, err := buildTests(dir, fmt.Sprintf("without-%d", len(m.beside)), m.beside)
	if err != nil {
		return fmt.Sprintf("%s; WITHOUT THE BUG NOT BUILT: %v", verdict, err), false
	}
	if out, err = m.test(without, exactly(caught)); err != nil || failedTest(out) != "" || !passed.Match(out) {
		return fmt.Sprintf("%s; THE SAME RUN WITHOUT THE BUG FAILS: %v %s", verdict, err, firstViolation(out)), false
	}
	return verdict + "; the same run without the bug passes", true
}

var (
	passed  = regexp.MustCompile(`(?m)^ *--- PASS`)
	failure = regexp.MustCompile(`(?m)^( *)--- FAIL: (\S+)`)
)

// failedTest returns the name of the first test that failed, a part of another one rather than that
// one; "": all passed.
func failedTest(out []byte) (name string) {
	for _, m := range failure.FindAllSubmatch(out, -1) {
		if name = string(m[2]); len(m[1]) > 0 {
			return name
		}
	}
	return name
}

// exactly returns the expression that selects one test.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// firstViolation returns the first line that a failed run reported.
func firstViolation(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if text := strings.TrimSpace(line); violation.MatchString(line) {
			return fmt.Sprintf("%.160s", text)
		}
	}
	return "the test failed"
}

var violation = regexp.MustCompile(`^        \S|probe_test.go`)

// buildTests builds the end-to-end tests with some changes, unless they are built already.
func buildTests(dir, name string, edits []edit) (binary string, err error) {
	binary = filepath.Join(dir, name+".test")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	changed, err := plantBugs(".", edits)
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range changed {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, name+"-"+strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		overlay.Replace[path] = to
	}
	file := filepath.Join(dir, name+".json")
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "test", "-tags", "faultpoints", "-overlay", file, "-c", "-o", binary,
		"./internal/testing/e2e").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// plantBugs returns the changed texts of the files below root, by their paths there.
func plantBugs(root string, edits []edit) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range edits {
		text, ok := changed[e.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(read)
		}
		if n := strings.Count(text, e.from); n != 1 {
			return nil, fmt.Errorf("%s has %d times %q: adapt the mutant to the code", e.file, n, e.from)
		}
		changed[e.file] = strings.Replace(text, e.from, e.to, 1)
	}
	return changed, nil
}

// test runs tests until the first failure.
func (m mutant) test(binary, run string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.count=1", "-test.v", "-test.timeout=0", "-test.failfast",
		"-chaos.over=90s", "-test.run", run}, m.flags...)...)
	cmd.Dir = "internal/testing/e2e"
	cmd.WaitDelay = 10 * time.Second // servers have its output
	out, err = cmd.CombinedOutput()
	if ctx.Err() != nil {
		return out, fmt.Errorf("no end within 20 minutes:\n%.2000s", bytes.TrimSpace(out))
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = nil
	}
	return out, err
}
