package apikey_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

var (
	loopback = netip.MustParseAddr("127.0.0.1")
	outside  = netip.MustParseAddr("192.0.2.7")
)

func setup(t *testing.T) (*pgxpool.Pool, *apikey.Store, uuid.UUID) {
	t.Helper()
	pool := dbtest.New(t)
	ws, err := workspace.New(pool).Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return pool, apikey.New(pool, nil), ws.ID
}

func create(t *testing.T, s *apikey.Store, g apikey.Grant) (apikey.Key, string) {
	t.Helper()
	if g.Name == "" {
		g.Name = "test"
	}
	if g.Scopes == nil {
		g.Scopes = apikey.Scopes{apikey.Chat}
	}
	key, text, err := s.Create(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return key, text
}

func refused(err error) bool {
	f := fault.From(err)
	return f != nil && f.Code == fault.InvalidAPIKey
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	_, s, ws := setup(t)
	key, text := create(t, s, apikey.Grant{Workspace: ws, Scopes: apikey.Scopes{apikey.SessionsRead, apikey.Chat, apikey.Chat}})
	for range 2 { // from the database, then from memory
		p, err := s.Authenticate(t.Context(), text, outside)
		if err != nil || p.Workspace != ws || p.Key != key.ID || p.Scopes.String() != "chat, sessions:read" {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	_, err := s.Authenticate(t.Context(), "", outside)
	if f := fault.From(err); f == nil || f.Code != fault.MissingAPIKey {
		t.Errorf("no key: %v", err)
	}
	_, elsewhere, foreign := setup(t)
	_, other := create(t, elsewhere, apikey.Grant{Workspace: foreign})
	for name, bad := range map[string]string{
		"malformed": "hello", "a typo": text[:20] + "!" + text[21:], "of another service": other, "much too long": strings.Repeat("x", 10<<10),
	} {
		if _, err := s.Authenticate(t.Context(), bad, outside); !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTyposNeverReachTheDatabase(t *testing.T) {
	t.Parallel()
	pool, s, ws := setup(t)
	_, text := create(t, s, apikey.Grant{Workspace: ws})
	pool.Close()
	if _, err := s.Authenticate(t.Context(), text, outside); err == nil || refused(err) {
		t.Fatalf("a valid key, without a database: %v", err)
	}
	for i := len("prl_"); i < len(text); i++ {
		typo := text[:i] + string("AB"[min(1, strings.Count(text[i:i+1], "A"))]) + text[i+1:]
		if _, err := s.Authenticate(t.Context(), typo, outside); !refused(err) {
			t.Fatalf("%s for %s: %v", typo, text, err)
		}
	}
}

func TestSecretIsNeverStored(t *testing.T) {
	t.Parallel()
	pool, s, ws := setup(t)
	key, text := create(t, s, apikey.Grant{Workspace: ws})
	var row string
	if err := pool.QueryRow(t.Context(), `SELECT to_json(k)::text FROM api_keys k WHERE id = $1`, key.ID).Scan(&row); err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := text[12:44]
	for i := range len(secret) - 8 {
		if part := secret[i : i+8]; strings.Contains(row+string(shown)+fmt.Sprintf("%+v", key), part) {
			t.Fatalf("%q is in %s or %s", part, row, shown)
		}
	}
	if key.Last4 != text[len(text)-4:] {
		t.Errorf("last 4 of %q: %q", text, key.Last4)
	}
}

func TestLoopbackKeyStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	_, s, ws := setup(t)
	_, text := create(t, s, apikey.Grant{Workspace: ws, Loopback: true})
	for _, from := range []string{"192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "fe80::1"} {
		for range 2 {
			if _, err := s.Authenticate(t.Context(), text, netip.MustParseAddr(from)); !refused(err) {
				t.Errorf("from %s: %v", from, err)
			}
		}
	}
	if _, err := s.Authenticate(t.Context(), text, netip.Addr{}); !refused(err) {
		t.Errorf("from nowhere: %v", err)
	}
	for _, from := range []string{"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"} {
		if _, err := s.Authenticate(t.Context(), text, netip.MustParseAddr(from)); err != nil {
			t.Errorf("from %s: %v", from, err)
		}
	}
}

func TestExpiredKeyIsRefused(t *testing.T) {
	t.Parallel()
	_, s, ws := setup(t)
	_, dead := create(t, s, apikey.Grant{Workspace: ws, Life: new(-time.Second)})
	_, live := create(t, s, apikey.Grant{Workspace: ws, Life: new(time.Hour)})
	if _, err := s.Authenticate(t.Context(), dead, outside); !refused(err) {
		t.Errorf("expired: %v", err)
	}
	if _, err := s.Authenticate(t.Context(), live, outside); err != nil {
		t.Errorf("not yet expired: %v", err)
	}
}

func TestUseIsNotedOnceAMinute(t *testing.T) {
	t.Parallel()
	pool, s, ws := setup(t)
	key, text := create(t, s, apikey.Grant{Workspace: ws})
	used := func() time.Time {
		keys, err := s.List(t.Context(), ws)
		if err != nil || len(keys) != 1 || keys[0].LastUsedAt == nil {
			t.Fatalf("%+v, %v", keys, err)
		}
		return *keys[0].LastUsedAt
	}
	authenticate := func() {
		// Each store is a new one: nothing is remembered.
		if _, err := apikey.New(pool, nil).Authenticate(t.Context(), text, outside); err != nil {
			t.Fatal(err)
		}
	}
	authenticate()
	first := used()
	authenticate()
	if again := used(); again != first {
		t.Errorf("noted twice within a minute: %v, %v", first, again)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE api_keys SET last_used_at = now() - interval '61 seconds' WHERE id = $1`, key.ID); err != nil {
		t.Fatal(err)
	}
	authenticate()
	if later := used(); !later.After(first) {
		t.Errorf("not noted after a minute: %v", later)
	}
}

func TestRevokedKeyIsDeadEverywhere(t *testing.T) {
	t.Parallel()
	pool, here, ws := setup(t)
	there := apikey.New(pool, nil)
	key, text := create(t, here, apikey.Grant{Workspace: ws})
	other, _ := create(t, here, apikey.Grant{Workspace: ws})

	running, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = there.Run(running) })
	defer wait.Until(t, "all goroutines", wg.Wait)
	defer stop()
	ctx, release := there.While(t.Context(), key.ID)
	defer release()
	alive, keep := there.While(t.Context(), other.ID)
	defer keep()
	for _, s := range []*apikey.Store{here, there} {
		if _, err := s.Authenticate(t.Context(), text, outside); err != nil {
			t.Fatal(err)
		}
	}
	if err := here.Revoke(t.Context(), uuid.New(), key.ID); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("another workspace revokes: %v", err)
	}
	if err := here.Revoke(t.Context(), ws, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Authenticate(t.Context(), text, outside); !refused(err) {
		t.Errorf("right after: %v", err)
	}
	wait.Receive(t, "the end of the stream", ctx.Done())
	if cause := context.Cause(ctx); !errors.Is(cause, apikey.ErrDead) {
		t.Errorf("the held stream ended with %v", cause)
	}
	if _, err := there.Authenticate(t.Context(), text, outside); !refused(err) {
		t.Errorf("the other replica still caches it: %v", err)
	}
	if alive.Err() != nil {
		t.Error("another key's streams ended too")
	}
	if err := here.Revoke(t.Context(), ws, key.ID); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestRotateOverlaps(t *testing.T) {
	t.Parallel()
	pool, s, ws := setup(t)
	const life = 90 * 24 * time.Hour
	by := &apikey.Principal{Workspace: ws, Key: "aaaaaaaa", Scopes: apikey.Scopes{apikey.MCP}}
	old, oldText := create(t, s, apikey.Grant{Workspace: ws, Name: "crm", Scopes: apikey.Scopes{apikey.MCP}, Loopback: true,
		Life: new(life), By: by})
	fresh, text, err := s.Rotate(t.Context(), ws, old.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.ID == old.ID || fresh.Name != "crm" || fresh.Scopes.String() != "mcp" || !fresh.Loopback || fresh.CreatedBy != nil ||
		fresh.ExpiresAt == nil || fresh.ExpiresAt.Sub(fresh.CreatedAt) != life {
		t.Errorf("the new key: %+v", fresh)
	}
	for name, k := range map[string]string{"old": oldText, "new": text} {
		if _, err := s.Authenticate(t.Context(), k, loopback); err != nil {
			t.Errorf("%s key in the overlap: %v", name, err)
		}
	}
	keys, err := s.List(t.Context(), ws)
	if err != nil || len(keys) != 2 || keys[0].ReplacedBy == nil || *keys[0].ReplacedBy != fresh.ID ||
		keys[0].ExpiresAt.Sub(fresh.CreatedAt) != time.Hour {
		t.Errorf("list: %+v, %v", keys, err)
	}
	if _, _, err := s.Rotate(t.Context(), ws, old.ID, time.Hour); !errors.Is(err, apikey.ErrReplaced) {
		t.Errorf("rotated twice: %v", err)
	}
	if _, _, err := s.Rotate(t.Context(), uuid.New(), fresh.ID, 0); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("another workspace rotates: %v", err)
	}
	if keys, _ := s.List(t.Context(), ws); len(keys) != 2 {
		t.Errorf("a failed rotation left %d keys", len(keys))
	}
	if _, _, err := s.Rotate(t.Context(), ws, fresh.ID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := apikey.New(pool, nil).Authenticate(t.Context(), text, loopback); !refused(err) {
		t.Errorf("without an overlap the old key still works: %v", err)
	}
}

func TestNobodyGrantsWhatTheyLack(t *testing.T) {
	t.Parallel()
	_, s, ws := setup(t)
	by := &apikey.Principal{Workspace: ws, Key: "aaaaaaaa", Scopes: apikey.Scopes{apikey.ToolsWrite}}
	key, _ := create(t, s, apikey.Grant{Workspace: ws, Scopes: apikey.Scopes{apikey.ToolsRead}, By: by})
	if key.CreatedBy == nil || *key.CreatedBy != "aaaaaaaa" {
		t.Errorf("created by %v", key.CreatedBy)
	}
	_, _, err := s.Create(t.Context(), apikey.Grant{Workspace: ws, Name: "x", Scopes: apikey.Scopes{apikey.ToolsRead, apikey.Secret}, By: by})
	if f := fault.From(err); f == nil || f.Code != fault.InsufficientScope || f.Detail.RequiredScope != "secret" {
		t.Errorf("grants secret: %v", err)
	}
	_, _, err = s.Create(t.Context(), apikey.Grant{Workspace: ws, Scopes: apikey.Scopes{"chat", "everything"}})
	if f := fault.From(err); f == nil || len(f.Detail.Violations) != 2 {
		t.Errorf("no name, an unknown scope: %+v", f)
	}
}

// TestListNamesTheOwnerOfAPersonalToken lists a member's personal token and a key of the workspace.
func TestListNamesTheOwnerOfAPersonalToken(t *testing.T) {
	t.Parallel()
	pool, s, ws := setup(t)
	const anna = "mbr_anna"
	if _, err := pool.Exec(t.Context(), `INSERT INTO users (id, email, name) VALUES ($1, 'anna@example.com', 'Anna')`, anna); err != nil {
		t.Fatal(err)
	}
	create(t, s, apikey.Grant{Workspace: ws, Member: anna})
	create(t, s, apikey.Grant{Workspace: ws})
	keys, err := s.List(t.Context(), ws)
	if err != nil || len(keys) != 2 || keys[0].Owner != "anna@example.com" || keys[1].Owner != "" {
		t.Errorf("%+v, %v", keys, err)
	}
}
