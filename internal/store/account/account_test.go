package account_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "river stone lantern 42"

// world has accounts and a workspace.
type world struct {
	*account.Store
	pool *pgxpool.Pool
	id   uuid.UUID
}

func newWorld(t *testing.T) world {
	t.Helper()
	pool := dbtest.New(t)
	ws, err := workspace.New(pool).Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return world{account.New(pool, nil), pool, ws.ID}
}

// create creates a user with a role in the workspace.
func (w world) create(t *testing.T, n account.NewUser, role apikey.Role) string {
	t.Helper()
	u, err := w.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		if err := w.SetRole(t.Context(), w.id, u.ID, role); err != nil {
			t.Fatal(err)
		}
	}
	return u.ID
}

// rule returns the rule that an error reports, "" for none.
func rule(t *testing.T, err error) string {
	t.Helper()
	f := fault.From(err)
	if f == nil || len(f.Detail.Violations) == 0 {
		if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	return f.Detail.Violations[0].Rule
}

// both runs two functions at the same time and returns their errors.
func both(ctx context.Context, one, two func(context.Context) error) [2]error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var errs [2]error
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, f := range []func(context.Context) error{one, two} {
		group.Go(func() { <-start; errs[i] = f(ctx) })
	}
	close(start)
	group.Wait()
	return errs
}

// TestTheLastOwnerStays takes the role of owner from every member, one after the other and two at
// the same time.
func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.create(t, account.NewUser{Email: "anna@halden.example"}, apikey.Owner)
	max := w.create(t, account.NewUser{Email: "max@halden.example"}, apikey.Viewer)
	if got := rule(t, w.SetRole(t.Context(), w.id, anna, apikey.Editor)); got != "last_owner" {
		t.Errorf("the last owner became an editor: %q", got)
	}
	if got := rule(t, w.Remove(t.Context(), w.id, anna)); got != "last_owner" {
		t.Errorf("the last owner was removed: %q", got)
	}
	if got := rule(t, w.SetRole(t.Context(), w.id, max, "boss")); got != "enum" {
		t.Errorf("an unknown role: %q", got)
	}
	for range 10 {
		for _, id := range []string{anna, max} {
			if err := w.SetRole(t.Context(), w.id, id, apikey.Owner); err != nil {
				t.Fatal(err)
			}
		}
		errs := both(t.Context(),
			func(ctx context.Context) error { return w.SetRole(ctx, w.id, anna, apikey.Viewer) },
			func(ctx context.Context) error { return w.Remove(ctx, w.id, max) })
		refused := 0
		for _, err := range errs {
			if rule(t, err) == "last_owner" {
				refused++
			}
		}
		var owners int
		if err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM members WHERE role = 'owner'").Scan(&owners); err != nil ||
			owners != 1 || refused != 1 {
			t.Fatalf("%d owners are left, %d changes were refused, %v", owners, refused, err)
		}
	}
}

// TestTheLastAdministratorStays takes the role from every administrator, disables them, and lets
// the groups of an identity provider take it.
func TestTheLastAdministratorStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	yes, no := true, false
	anna := w.create(t, account.NewUser{Email: "anna@halden.example", Password: password, Admin: true}, "")
	w.create(t, account.NewUser{Email: "nopassword@halden.example", Admin: true}, "")
	for name, change := range map[string]account.UserChange{"demoted": {Admin: &no}, "disabled": {Disabled: &yes}} {
		if _, err := w.Update(t.Context(), anna, change); rule(t, err) != "last_admin" {
			t.Errorf("the last administrator who can sign in was %s: %v", name, err)
		}
	}
	max := w.create(t, account.NewUser{Email: "max@halden.example", Password: password}, "")
	for range 10 {
		for _, id := range []string{anna, max} {
			if _, err := w.Update(t.Context(), id, account.UserChange{Admin: &yes, Disabled: &no}); err != nil {
				t.Fatal(err)
			}
		}
		errs := both(t.Context(),
			func(ctx context.Context) error {
				_, err := w.Update(ctx, anna, account.UserChange{Admin: &no})
				return err
			},
			func(ctx context.Context) error {
				_, err := w.Update(ctx, max, account.UserChange{Disabled: &yes})
				return err
			})
		if one, two := rule(t, errs[0]), rule(t, errs[1]); one+two != "last_admin" {
			t.Fatalf("two changes at the same time: %q and %q", one, two)
		}
	}

	identity := account.Identity{Subject: "issuer 1", Email: "anna@halden.example", Verified: true, DecidesAdmin: true, Admin: true}
	if _, err := w.Update(t.Context(), anna, account.UserChange{Disabled: &no}); err != nil {
		t.Fatal(err)
	}
	if u, err := w.SignInWith(t.Context(), identity); err != nil || u.ID != anna || !u.Admin {
		t.Fatal(u, err)
	}
	if _, err := w.Update(t.Context(), max, account.UserChange{Admin: &no}); err != nil {
		t.Fatal(err)
	}
	identity.Admin = false
	if u, err := w.SignInWith(t.Context(), identity); err != nil || !u.Admin {
		t.Errorf("the groups took the last administrator's role: %+v, %v", u, err)
	}
	if _, err := w.Update(t.Context(), max, account.UserChange{Admin: &yes, Disabled: &no}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignInWith(t.Context(), identity); !errors.Is(err, account.ErrNoRole) {
		t.Errorf("an administrator without the group: %v", err)
	}
	if u, err := w.User(t.Context(), anna); err != nil || u.Admin {
		t.Errorf("the groups took no role: %+v, %v", u, err)
	}
}

// TestPasswordRules checks, stores and tries passwords.
func TestPasswordRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short":                           "min_length",
		strings.Repeat("ä", 11):           "min_length",
		strings.Repeat("abcdefgh", 33):    "max_length",
		"not \xff valid text":             "max_length",
		"aaaaaaaaaaaaaaaa":                "common",
		"abababababababab":                "common",
		"password1234":                    "common",
		"P@ssw0rd!!!!":                    "common",
		"anna@halden.example":             "common",
		"halden-2026!":                    "common",
		"correct horse battery staple":    "",
		password:                          "",
		"Ünïcödé pässwörd":                "",
		strings.Repeat("abcdefgh", 32):    "",
		"        river stone            ": "",
	} {
		if got := rule(t, account.CheckPassword(text, "anna@halden.example")); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}

	w := newWorld(t)
	id := w.create(t, account.NewUser{Email: "Anna@Halden.example", Password: password}, "")
	w.create(t, account.NewUser{Email: "none@halden.example"}, "")
	try := func(email, text string) bool {
		t.Helper()
		_, ok, err := w.Verify(t.Context(), email, text)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !try(" anna@halden.example ", password) {
		t.Error("the password does not work")
	}
	for _, c := range [][2]string{{"anna@halden.example", ""}, {"anna@halden.example", password + " "}, {"none@halden.example", ""},
		{"unknown@halden.example", ""}, {"anna@halden.example", strings.Repeat("a", 10_000)}} {
		if try(c[0], c[1]) {
			t.Errorf("%q signs in with %.20q", c[0], c[1])
		}
	}
	var stored string
	if err := w.pool.QueryRow(t.Context(), "SELECT password_hash FROM users WHERE id = $1", id).Scan(&stored); err != nil ||
		!strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("the password is stored as %q, %v", stored, err)
	}
	if got := rule(t, w.ChangePassword(t.Context(), id, "wrong", "another river stone 7", "")); got != "password" {
		t.Errorf("a change with a wrong password: %q", got)
	}
	keep, other := w.begin(t, id), w.begin(t, id)
	if err := w.ChangePassword(t.Context(), id, password, "another river stone 7", strings.Split(keep, ".")[0]); err != nil {
		t.Fatal(err)
	}
	if try("anna@halden.example", password) || !try("anna@halden.example", "another river stone 7") {
		t.Error("the change has no effect")
	}
	for cookie, want := range map[string]bool{keep: true, other: false, strings.Split(keep, ".")[0] + ".other": false, "": false} {
		if _, ok, err := w.Authenticate(t.Context(), cookie, ""); ok != want || err != nil {
			t.Errorf("after the change a session is %v, %v", ok, err)
		}
	}
}

func (w world) begin(t *testing.T, id string) string {
	t.Helper()
	cookie, err := w.Begin(t.Context(), id, "127.0.0.1", "")
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

// TestSetupHasOneWinner creates the first administrator many times at once, with the same token and
// with others.
func TestSetupHasOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const visitors = 6
	tokens := make([]string, visitors)
	for i := range tokens {
		if i%2 == 1 {
			tokens[i] = tokens[i-1]
			continue
		}
		text, err := w.NewSetupToken(ctx)
		if err != nil {
			t.Fatal(err)
		}
		tokens[i] = text
	}
	// No user can be inserted until all visitors wait: for the insertion, or for each other.
	hold, err := w.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := hold.Exec(ctx, "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, visitors)
	var group sync.WaitGroup
	for i, text := range tokens {
		group.Go(func() {
			_, errs[i] = w.Setup(ctx, text, account.NewUser{Email: string(rune('a'+i)) + "@halden.example", Password: password})
		})
	}
	wait.For(t, "all visitors to wait", func() bool {
		var waiting int
		err := w.pool.QueryRow(ctx,
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
		return err == nil && waiting == visitors
	})
	if err := hold.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all visitors", group.Wait)
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, account.ErrAdminExists) {
			t.Error(err)
		}
	}
	var users, links int
	if err := w.pool.QueryRow(ctx, "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM login_links)").Scan(&users,
		&links); err != nil || won != 1 || users != 1 || links != 0 {
		t.Errorf("%d won, %d users, %d links, %v", won, users, links, err)
	}
	if _, err := w.NewSetupToken(ctx); !errors.Is(err, account.ErrAdminExists) {
		t.Errorf("a token after the set-up: %v", err)
	}
}
