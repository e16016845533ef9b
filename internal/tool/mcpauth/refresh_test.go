package mcpauth_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// ending connects the server with an access token that is about to end.
func (w *world) ending(t *testing.T) {
	t.Helper()
	w.auth.SetLife(10 * time.Second)
	w.connect(t, "")
	w.auth.SetLife(time.Hour)
}

// onePool returns a pool with one connection.
func (w *world) onePool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	config := w.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestOneReplicaRefreshes lets many callers of two replicas need a token at once. The authorization
// server accepts a refresh token once, so a second use would end the grant. Each replica has one
// connection to the database, which is free while the authorization server answers.
func TestOneReplicaRefreshes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	server := w.add(t, crm)
	w.ending(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	pools := []*pgxpool.Pool{w.onePool(t), w.onePool(t)}
	w.auth.SetHold(func() {
		for _, pool := range pools {
			if err := pool.Ping(ctx); err != nil {
				t.Errorf("the database during a refresh: %v", err)
			}
		}
	})
	const callers = 8
	var group sync.WaitGroup
	tokens, failed := make([]string, callers*len(pools)), make([]error, callers*len(pools))
	for r, pool := range pools {
		replica := w.replica(pool).OfCaller(w.workspace, "")
		for i := range callers {
			group.Go(func() {
				token, err := replica.Token(ctx, server, 0)
				if failed[r*callers+i] = err; err == nil {
					tokens[r*callers+i] = string(token.Reveal())
				}
			})
		}
	}
	group.Wait()
	for i := range tokens {
		if failed[i] != nil || tokens[i] == "" || tokens[i] != tokens[0] {
			t.Errorf("caller %d has the token of the first: %t, %v", i, tokens[i] == tokens[0], failed[i])
		}
	}
	if n := w.auth.Count("refresh"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// TestCanceledCallKeepsItsGrant cancels a call after the authorization server has replaced the refresh
// token, before its answer arrives.
func TestCanceledCallKeepsItsGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	server := w.add(t, crm)
	w.ending(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.auth.SetHold(cancel)
	_, _ = w.service.OfCaller(w.workspace, "").Token(ctx, server, 0)
	if ctx.Err() == nil {
		t.Fatal("the authorization server was not asked")
	}
	if _, err := w.service.OfCaller(w.workspace, "").Token(t.Context(), server, 0); err != nil || w.auth.Count("refresh") != 1 {
		t.Errorf("the next call: %v, %d refreshes", err, w.auth.Count("refresh"))
	}
}

// TestVersionsAreOfOneGrant connects a server again while a run still has the earlier token.
func TestVersionsAreOfOneGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	server := w.add(t, crm)
	tokens := w.service.OfCaller(w.workspace, "")
	w.connect(t, "")
	old, err := tokens.Token(t.Context(), server, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.RemoveGrant(t.Context(), w.workspace, crm.Name, grants(t, w)[0].ID); err != nil {
		t.Fatal(err)
	}
	w.connect(t, "")
	again, err := tokens.Token(t.Context(), server, old.Version)
	if err != nil || again.Version == old.Version || w.auth.Count("refresh") != 0 {
		t.Errorf("version %d after %d, %v, %d refreshes", again.Version, old.Version, err, w.auth.Count("refresh"))
	}
}

// TestRefreshedTokensAreChecked refreshes tokens that cannot be used.
func TestRefreshedTokensAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	server := w.add(t, crm)
	for reason, members := range map[string]map[string]any{
		"another kind of token": {"token_type": "mac"},
		"not one line of ASCII": {"access_token": "one\ntwo"},
		"at most 16384 bytes":   {"refresh_token": strings.Repeat("x", 17<<10)},
	} {
		w.auth.ChangeTokens(nil)
		w.ending(t)
		before := grants(t, w)[0]
		w.auth.ChangeTokens(members)
		_, err := w.service.OfCaller(w.workspace, "").Token(t.Context(), server, 0)
		if _, refused := err.(tool.Refusal); !refused || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
		if after := grants(t, w); len(after) != 1 || string(after[0].Tokens) != string(before.Tokens) {
			t.Errorf("%s: the grant has changed", reason)
		}
	}
}

// TestLinkWorksOnce completes a link twice at once, and after its server was removed.
func TestLinkWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.add(t, crm)
	link := w.link(t, "")
	complete := func() toolset.Grant {
		t.Helper()
		state, answer := w.authorize(t, link)
		_, grant, err := w.service.Finish(t.Context(), answer, state)
		if err != nil {
			t.Fatal(err)
		}
		return grant
	}
	first, second := complete(), complete()
	w.put(t, link, first)
	refused := func(what string, link toolset.Link, g toolset.Grant) {
		t.Helper()
		if err := w.tryPut(t, link, g); fault.From(err) == nil || !strings.Contains(err.Error(), "does not work any more") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("the second completion", link, second)
	if g := grants(t, w); len(g) != 1 || string(g[0].Tokens) != string(first.Tokens) {
		t.Errorf("%d grants, not that of the first completion", len(g))
	}
	link = w.link(t, "")
	late := complete()
	if err := w.store.Remove(t.Context(), w.workspace, crm.Name); err != nil {
		t.Fatal(err)
	}
	refused("after the removal", link, late)
}
