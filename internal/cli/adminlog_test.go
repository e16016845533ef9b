package cli_test

import (
	"context"
	"os/user"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestCommandsAreLogged checks that a command on the database is recorded with the operating
// system's user.
func TestCommandsAreLogged(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn, "USER=somebody"}}
	sh.must("workspace", "create", "office")
	sh.must("permissions", "update", "bash", "deny")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var changes, mine int
	err = dbtest.Pool(t, dsn).QueryRow(context.Background(),
		`SELECT count(*), count(*) FILTER (WHERE actor_kind = 'command' AND actor_name = $1)
		FROM admin_log WHERE object IN ('workspaces', 'tool_rules')`, me.Username).Scan(&changes, &mine)
	if err != nil || changes != 2 || mine != 2 {
		t.Errorf("%d of %d changes are recorded as the user's: %v", mine, changes, err)
	}
}
