package dbtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Roles returns an empty database that belongs to a role without further rights, as the DSNs of that
// owner and of another role that can only connect. The roles are dropped when the test ends. other is
// the name of the second one.
func Roles(t testing.TB) (admin, owner, limited, other string) {
	t.Helper()
	id := strings.ToLower(rand.Text()[:10])
	own, other := "owner_"+id, "limited_"+id
	found := server(t)
	t.Cleanup(func() { // after the database is dropped
		for _, sql := range []string{"DROP ROLE IF EXISTS " + own, "DROP ROLE IF EXISTS " + other} {
			if err := execute(found, sql); err != nil {
				t.Errorf("dbtest: %v", err)
			}
		}
	})
	admin = Empty(t)
	conn, err := pgx.Connect(context.Background(), admin)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	defer conn.Close(context.Background())
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	for _, sql := range []string{
		"CREATE ROLE " + own + " LOGIN", "CREATE ROLE " + other + " LOGIN",
		"ALTER DATABASE " + database + " OWNER TO " + own, "ALTER SCHEMA public OWNER TO " + own,
	} {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("dbtest: %s: %v", sql, err)
		}
	}
	return admin, withUser(t, admin, own), withUser(t, admin, other), other
}

// withUser returns a DSN for another role, which the server trusts.
func withUser(t testing.TB, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " user=" + role
	}
	u.User = url.User(role)
	return u.String()
}
