// Mutants shows that the chaos harness finds bugs. It plants one bug after the other in a copy of a
// few files, builds the end-to-end tests with them and runs the seeds, crash points or probes that
// must fail. The files of the repository do not change: go build -overlay replaces them.
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
	name  string
	bug   string
	edits []edit
	run   string   // the tests, as go test -run has it
	flags []string // more arguments
}

func main() {
	failed := false
	for _, m := range mutants {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], m.name) {
			continue
		}
		out, err := m.test()
		switch {
		case err != nil:
			fmt.Printf("%-12s NOT BUILT: %v\n%s", m.name, err, out)
			failed = true
		case !bytes.Contains(out, []byte("--- FAIL")):
			fmt.Printf("%-12s MISSED: %s\n", m.name, m.bug)
			failed = true
		default:
			fmt.Printf("%-12s caught after %d runs: %s: %s\n", m.name, len(passed.FindAll(out, -1))+1, m.bug, firstViolation(out))
		}
	}
	if failed {
		os.Exit(1)
	}
}

var passed = regexp.MustCompile(`(?m)^    --- PASS`)

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

// test builds the tests with the bug and runs them until the first failure.
func (m mutant) test() (out []byte, err error) {
	dir, err := os.MkdirTemp("", "parley-mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, e := range m.edits {
		path, err := filepath.Abs(e.file)
		if err != nil {
			return nil, err
		}
		from := path
		if changed, ok := overlay.Replace[path]; ok {
			from = changed
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if n := strings.Count(string(text), e.from); n != 1 {
			return nil, fmt.Errorf("%s has %d times %q: adapt the mutant to the code", e.file, n, e.from)
		}
		to := filepath.Join(dir, strings.ReplaceAll(e.file, "/", "_"))
		if err := os.WriteFile(to, []byte(strings.Replace(string(text), e.from, e.to, 1)), 0o644); err != nil {
			return nil, err
		}
		overlay.Replace[path] = to
	}
	file := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "e2e.test")
	if out, err := exec.Command("go", "test", "-tags", "faultpoints", "-overlay", file, "-c", "-o", binary, "./internal/testing/e2e").CombinedOutput(); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.count=1", "-test.v", "-test.timeout=0", "-test.failfast", "-chaos.over=90s", "-test.run", m.run}, m.flags...)...)
	cmd.Dir = "internal/testing/e2e"
	out, err = cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); exited && ctx.Err() == nil {
		err = nil
	}
	return out, err
}
