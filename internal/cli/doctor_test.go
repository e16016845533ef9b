package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app"
)

// TestDoctorReportsFailures examines a set-up without a database: the exit code is 1, and every
// check has a line, or an object with --json.
func TestDoctorReportsFailures(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_SANDBOX=off", "DATABASE_URL=postgres://127.0.0.1:1/none"}}
	out, errs, code := sh.run("doctor", "--url", "http://127.0.0.1:1")
	if code != 1 || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	for _, line := range []string{"fail  database    PostgreSQL cannot be reached",
		"\n                  Start PostgreSQL, or correct DATABASE_URL.", "skip  listen ", "ok    disk ",
		"fail  url         http://127.0.0.1:1: "} {
		if !strings.Contains(out, line) {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	out, _, code = sh.run("doctor", "--json")
	var found struct{ Data []app.Finding }
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 1 || len(found.Data) != 14 {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
	help := sh.must("doctor", "--help")
	for _, f := range found.Data {
		if !regexp.MustCompile(`\b` + f.Check + `\b`).MatchString(help) {
			t.Errorf("the help lacks the check %s:\n%s", f.Check, help)
		}
	}
}
