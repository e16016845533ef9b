package vault_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

const me = "command line"

func secret(text string) vault.Value { return vault.NewValue([]byte(text)) }

// world is a store on a fresh database with a workspace.
func world(t *testing.T, keys ...string) (*vault.Store, *pgxpool.Pool, uuid.UUID) {
	t.Helper()
	pool := dbtest.New(t)
	s := vault.New(pool, keyring(t, keys...))
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, pool, tenant(t, pool, "one")
}

func tenant(t *testing.T, pool *pgxpool.Pool, slug string) uuid.UUID {
	t.Helper()
	w, err := workspace.New(pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

func register(t *testing.T, s *vault.Store, w uuid.UUID, r vault.Registration) vault.Credential {
	t.Helper()
	c, err := s.Register(t.Context(), w, r, me)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// valueOf returns the opened value of a credential.
// setSecret sets the value of a credential as a conversation does.
func setSecret(t *testing.T, s *vault.Store, pool *pgxpool.Pool, w uuid.UUID, name string, value vault.Value) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return s.Provide(t.Context(), tx, w, name, value, me)
	})
}

func valueOf(t *testing.T, s *vault.Store, w uuid.UUID, name string) string {
	t.Helper()
	list, err := s.Open(t.Context(), w, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	return string(list[0].Value.Reveal())
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	tag, err := pool.Exec(t.Context(), sql, args...)
	if err != nil || strings.HasPrefix(sql, "UPDATE") && tag.RowsAffected() == 0 {
		t.Fatalf("%s: %d rows, %v", sql, tag.RowsAffected(), err)
	}
}

// audit returns the history of a credential, in order.
func audit(t *testing.T, pool *pgxpool.Pool, w uuid.UUID, name string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT what || ' ' || version || ' by ' || by || ' for ' || array_to_string(allowed_hosts, ' ')
		FROM credential_uses WHERE workspace_id = $1 AND name = $2 ORDER BY id`, w, name)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestACredentialIsRegisteredSetProvidedAndRemoved(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	c := register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"API.Example.com", "*.example.org:8443", "api.example.com."}})
	if c.HasValue || c.Version != 1 || !slices.Equal(c.Hosts, []string{"*.example.org:8443", "api.example.com"}) {
		t.Errorf("registered %+v", c)
	}
	if opened, err := s.Open(t.Context(), w, []string{"TOKEN"}); err != nil || opened[0].Value.Reveal() != nil {
		t.Errorf("opened %+v, %v without a value", opened, err)
	}
	for _, value := range []string{"first value", "second value"} {
		register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: c.Hosts, Value: secret(value)})
		if got := valueOf(t, s, w, "TOKEN"); got != value {
			t.Errorf("the value is %q", got)
		}
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return s.Provide(t.Context(), tx, w, "TOKEN", secret("provided value"), "key:abcdefgh")
	})
	if err != nil || valueOf(t, s, w, "TOKEN") != "provided value" {
		t.Errorf("provide: %v", err)
	}
	// With other hosts, the value stays and opens under them.
	c = register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"other.example.com"}, InBody: true})
	if !c.HasValue || c.Version != 5 || !c.InBody || valueOf(t, s, w, "TOKEN") != "provided value" {
		t.Errorf("registered again: %+v", c)
	}
	list, err := s.List(t.Context(), w)
	if err != nil || len(list) != 1 || list[0].UpdatedBy != me || list[0].Version != 5 {
		t.Errorf("list: %+v, %v", list, err)
	}
	if err := s.Remove(t.Context(), w, "TOKEN", me); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(t.Context(), w); err != nil || len(list) != 0 {
		t.Errorf("after the removal: %+v, %v", list, err)
	}
	// A credential registered again under the name has a new version and no value.
	if c = register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"b.example.com"}}); c.HasValue || c.Version != 7 {
		t.Errorf("after the removal: %+v", c)
	}
	want := []string{
		"registered 1 by command line for *.example.org:8443 api.example.com",
		"set 2 by command line for *.example.org:8443 api.example.com",
		"rotated 3 by command line for *.example.org:8443 api.example.com",
		"provided 4 by key:abcdefgh for *.example.org:8443 api.example.com",
		"registered 5 by command line for other.example.com",
		"removed 6 by command line for other.example.com",
		"registered 7 by command line for b.example.com",
	}
	if diff := cmp.Diff(want, audit(t, pool, w, "TOKEN")); diff != "" {
		t.Error(diff)
	}
}

// TestAChangedRowDoesNotOpen tries what an attacker with write access to the database, but without
// the key, can do.
func TestAChangedRowDoesNotOpen(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	other := tenant(t, pool, "two")
	for _, name := range []string{"A", "B"} {
		register(t, s, w, vault.Registration{Name: name, Hosts: []string{"a.example.com", "b.example.com"}, Value: secret("value of " + name)})
	}
	register(t, s, other, vault.Registration{Name: "A", Hosts: []string{"a.example.com", "b.example.com"}, Value: secret("value of another")})
	var old []byte
	if err := pool.QueryRow(t.Context(), `SELECT value FROM credentials WHERE workspace_id = $1 AND name = 'A'`, w).Scan(&old); err != nil {
		t.Fatal(err)
	}
	undo := `UPDATE credentials SET allowed_hosts = '{a.example.com,b.example.com}', in_query = false, in_body = false,
			allow_http = false, version = 1, value = $1
		WHERE workspace_id = '` + w.String() + `' AND name = 'A'`
	for _, change := range []string{
		`allowed_hosts = allowed_hosts || '{evil.com}'`, `allowed_hosts = '{evil.com}'`, `allowed_hosts = '{a.example.com}'`,
		`allowed_hosts = '{"a.example.comb.example.com"}'`, `in_query = true`, `in_body = true`, `allow_http = true`, `version = 2`,
		`value = (SELECT value FROM credentials WHERE name = 'B')`,
		`value = (SELECT value FROM credentials WHERE name = 'A' AND workspace_id = '` + other.String() + `')`,
	} {
		exec(t, pool, `UPDATE credentials SET `+change+` WHERE workspace_id = $1 AND name = 'A'`, w)
		if opened, err := s.Open(t.Context(), w, []string{"A"}); !errors.Is(err, vault.ErrNotOpened) || opened != nil {
			t.Errorf("%s: opened %v, %v", change, opened, err)
		}
		// The service itself cannot repair it either.
		if _, err := s.Register(t.Context(), w, vault.Registration{Name: "A", Hosts: []string{"a.example.com"}}, me); !errors.Is(err,
			vault.ErrNotOpened) {
			t.Errorf("%s: registered again, %v", change, err)
		}
		exec(t, pool, undo, old)
	}
	exec(t, pool, `UPDATE credentials SET allowed_hosts = '{b.example.com,a.example.com}' WHERE workspace_id = $1 AND name = 'A'`, w)
	if got := valueOf(t, s, w, "A"); got != "value of A" {
		t.Errorf("in another order: %q", got)
	}
	for _, plain := range []string{`'plain text'`, `''`, `'\x01'`, `repeat('x', 200)::bytea`} {
		if _, err := pool.Exec(t.Context(), `UPDATE credentials SET value = `+plain); err == nil {
			t.Errorf("the column accepts %s", plain)
		}
	}
}

func TestSecretsAreKnownByNameInTheirWorkspace(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	other := tenant(t, pool, "two")
	register(t, s, w, vault.Registration{Name: "ONE", Hosts: []string{"a.example.com"}, Value: secret("value one")})
	register(t, s, w, vault.Registration{Name: "TWO", Hosts: []string{"a.example.com"}})
	register(t, s, other, vault.Registration{Name: "OTHER", Hosts: []string{"a.example.com"}})

	if err := s.Known(t.Context(), w, nil); err != nil {
		t.Error(err)
	}
	if err := s.Known(t.Context(), w, []string{"TWO", "ONE", "TWO"}); err != nil {
		t.Error(err)
	}
	opened, err := s.Open(t.Context(), w, []string{"TWO", "ONE", "TWO"})
	if err != nil || len(opened) != 2 || opened[0].Name != "TWO" || string(opened[1].Value.Reveal()) != "value one" {
		t.Errorf("opened %+v, %v", opened, err)
	}
	begin := func(work func(pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), pool, work) }
	for _, name := range []string{"OTHER", "one", "", "A\x00B", "\xff", strings.Repeat("A", 100_000)} {
		set := setSecret(t, s, pool, w, name, secret("long enough"))
		_, open := s.Open(t.Context(), w, []string{"ONE", name})
		for what, err := range map[string]error{
			"known": s.Known(t.Context(), w, []string{"ONE", name}), "open": open, "set": set,
			"remove": s.Remove(t.Context(), w, name, me),
			"provide": begin(func(tx pgx.Tx) error {
				return s.Provide(t.Context(), tx, w, name, secret("long enough"), me)
			}),
		} {
			f := fault.From(err)
			if f == nil || f.Code != fault.UnknownSecret || !slices.Equal(f.Detail.AvailableKeys, []string{"ONE", "TWO"}) || len(f.Message) > 200 {
				t.Errorf("%s %.20q: %v", what, name, err)
			}
		}
	}
}

func TestRefusalsShowNoValue(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"a.example.com"}})
	for what, bad := range map[string]string{
		"short": "shh", "empty": "", "long": strings.Repeat("shh-shh!", 8<<10) + "!", "line end": "shh-shh-\n", "NUL": "shh-shh\x00-shh",
		"escape": "shh-shh\x1b[0m", "delete": "shh-shh-\x7f", "C1": "shh-shh-\u0085", "no UTF-8": "shh-shh-\xff", "blank": "shh-shh- ",
		"leading blank": "\u00a0shh-shh-",
	} {
		err := setSecret(t, s, pool, w, "TOKEN", secret(bad))
		f := fault.From(err)
		if f == nil || f.Detail.Violations[0].Param != "/value" || strings.Contains(fmt.Sprintf("%+v", f), "shh") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, good := range []string{"12345678", strings.Repeat("é", 32<<10), `&<>"'\/+ %20 ` + "😀."} {
		if err := setSecret(t, s, pool, w, "TOKEN", secret(good)); err != nil || valueOf(t, s, w, "TOKEN") != good {
			t.Errorf("%.40q: %v", good, err)
		}
	}
	// All violations are reported at once.
	_, err := s.Register(t.Context(), w, vault.Registration{Name: "path", Hosts: []string{"a.example.com", "https://x", "1.2.3.4"},
		Value: secret("x")}, me)
	if f := fault.From(err); f == nil || len(f.Detail.Violations) != 4 {
		t.Errorf("four violations expected: %v", err)
	}
	for _, name := range []string{"", "token", "1TOKEN", "_TOKEN", "TO-KEN", "TOKEN\n", "PATH", "LD_PRELOAD", "HTTPS_PROXY", "BASH_ENV",
		"PYTHONPATH", "NODE_OPTIONS", "SSL_CERT_FILE", "GIT_SSH", "GIT_CONFIG_GLOBAL", "LESSOPEN", "JAVA_TOOL_OPTIONS", "RUBYOPT", "PERL5OPT",
		"OPENSSL_CONF", "SSLKEYLOGFILE", "CURL_HOME", "GCONV_PATH", "LOCPATH", "TMPDIR", strings.Repeat("A", 65)} {
		if _, err := s.Register(t.Context(), w, vault.Registration{Name: name, Hosts: []string{"a.example.com"}}, me); fault.From(err) == nil {
			t.Errorf("the name %q is accepted: %v", name, err)
		}
	}
	for _, name := range []string{"LDAP_PASSWORD", "GIT_TOKEN", "NODE_AUTH_TOKEN", "GO_KEY", strings.Repeat("A", 64)} {
		if _, err := s.Register(t.Context(), w, vault.Registration{Name: name, Hosts: []string{"a.example.com"}}, me); err != nil {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	for _, hosts := range [][]string{nil, make([]string, 33)} {
		if _, err := s.Register(t.Context(), w, vault.Registration{Name: "A", Hosts: hosts}, me); fault.From(err) == nil {
			t.Errorf("%d hosts: %v", len(hosts), err)
		}
	}
}

func TestHostsAreCanonical(t *testing.T) {
	t.Parallel()
	s, _, w := world(t)
	for given, want := range map[string]string{
		"api.example.com": "api.example.com", "API.EXAMPLE.COM": "api.example.com", "a.b-c.example.com.": "a.b-c.example.com",
		"*.example.com": "*.example.com", "*.example.com:8443": "*.example.com:8443", "example.com:65535": "example.com:65535",
		"xn--bcher-kva.example": "xn--bcher-kva.example", "3com.com": "3com.com", "localhost": "localhost",
		"LocalHost:9977": "localhost:9977", "vllm:8000": "vllm:8000", "1.2.3.4.example.com": "1.2.3.4.example.com",
	} {
		if c := register(t, s, w, vault.Registration{Name: "A", Hosts: []string{given}}); c.Hosts[0] != want {
			t.Errorf("%s is stored as %s", given, c.Hosts[0])
		}
	}
	for _, bad := range []string{
		"", ".", "*", "*.", "*.com", "**.example.com", "a.*.example.com", "*example.com", "*.localhost", "7", "0x7f", "example.com..",
		".example.com", "a..example.com",
		"https://example.com", "example.com/", "example.com/path", "user@example.com", "example.com:", "example.com:0", "example.com:65536",
		"example.com:080",
		"example.com:99999999", "example.com:80:80", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7f000001", "1.2.3.0xff",
		"1.2.3.4:443",
		"[::1]", "::1", "[::1]:443", "bücher.example", "exаmple.com", "example。com", "exam ple.com", "example.com\n", "a\x00.example.com",
		"-a.example.com", "a-.example.com",
		"a_b.example.com", "fe80::1%eth0", strings.Repeat("a", 64) + ".example.com", strings.Repeat("a.", 130) + "example.com", "example.1",
		"\u212a.example.com",
	} {
		if c, err := s.Register(t.Context(), w, vault.Registration{Name: "A", Hosts: []string{bad}}, me); fault.From(err) == nil {
			t.Errorf("%q is stored as %q, %v", bad, c.Hosts, err)
		}
	}
}

func TestWhoeverSetsLastIsWhatOpens(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := vault.Registration{Name: "TOKEN", Hosts: []string{fmt.Sprintf("h%d.example.com", i)},
				Value: secret(fmt.Sprintf("value number %d", i))}
			if _, err := s.Register(t.Context(), w, r, me); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	opened, err := s.Open(t.Context(), w, []string{"TOKEN"})
	if err != nil || opened[0].Version != 8 || opened[0].Hosts[0] != "h"+strings.TrimPrefix(string(opened[0].Value.Reveal()),
		"value number ")+".example.com" {
		t.Errorf("opened %+v, %v", opened, err)
	}
	if n := len(audit(t, pool, w, "TOKEN")); n != 8 {
		t.Errorf("%d changes noted", n)
	}
}

func TestWhatIsRolledBackWasNotProvided(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"a.example.com"}})
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if err := s.Provide(t.Context(), tx, w, "TOKEN", secret("long enough"), me); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) || valueOf(t, s, w, "TOKEN") != "" || len(audit(t, pool, w, "TOKEN")) != 1 {
		t.Errorf("%v, %v", err, audit(t, pool, w, "TOKEN"))
	}
}
