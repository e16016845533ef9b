package cli_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestDeclinedQuestionEndsItsLine declines a deletion in words and with the end of stdin: the message
// begins a line.
func TestDeclinedQuestionEndsItsLine(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t)}}
	sh.must("workspace", "create", "one")
	for _, answer := range []string{"n\n", "no thank you", ""} {
		_, errs, code := sh.pipe(strings.NewReader(answer), "workspace", "delete", "one")
		if code != 2 || !strings.Contains(errs, "[y/N] \nparley: ") {
			t.Errorf("%q: exit code %d, %q", answer, code, errs)
		}
	}
}
