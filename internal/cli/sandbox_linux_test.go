package cli_test

import (
	"strings"
	"testing"
)

// TestSandboxCheckAgreesWithServeDev checks that root, without a database in the settings, gets the
// user ids that serve --dev reserves for commands.
func TestSandboxCheckAgreesWithServeDev(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir()}
	if out, errs, code := sh.run("sandbox", "check"); strings.Contains(errs, "The service is root") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}
