package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool/mcptool"
)

// slowGrants runs a function between a call that finds no grant and the question of its turn.
type slowGrants struct {
	mcptool.Grants
	missed chan func()
}

// Token implements mcptool.Grants.
func (g slowGrants) Token(ctx context.Context, server toolset.Server, rejected int64) (mcptool.Token, error) {
	t, err := g.Grants.Token(ctx, server, rejected)
	if errors.Is(err, mcptool.ErrNotConnected) {
		select {
		case f := <-g.missed:
			f()
		default:
		}
	}
	return t, err
}

// addCRM adds the server with OAuth and connects it, so that its tools are accepted.
func (r *replica) addCRM(t *testing.T) {
	t.Helper()
	r.api(t, "POST tool-servers", `{"name":"crm","url":"https://crm.example/mcp","auth":"oauth"}`)
	r.browser(t).follow(t, link(t, r.api(t, "POST tool-servers/crm/connect", "")))
	if got := r.api(t, "GET tool-servers/crm", ""); !strings.Contains(got, `"name":"crm__whoami"`) {
		t.Fatalf("connected: %s", got)
	}
}

// TestNoGrantIsMissed lets a grant arrive before the turn of its call has parked, lets a replica die
// after it has stored a grant, and removes the server of a question. The turns continue.
func TestNoGrantIsMissed(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs replicas")
	w := newWorld(t)
	a := w.start(t, nil)
	a.addCRM(t)
	b := w.start(t, a)
	const columns = `workspace_id, server_id, holder, tokens, issuer, scopes, expires_at`
	if _, err := a.Pool.Exec(t.Context(), `CREATE TABLE held AS WITH gone AS (DELETE FROM tool_grants RETURNING *) SELECT `+columns+
		` FROM gone`); err != nil {
		t.Fatal(err)
	}
	early, user := link(t, a.api(t, "POST tool-servers/crm/connect", "")), b.browser(t)
	w.missed <- func() { user.follow(t, early) }
	text, session := a.ask(t, fmt.Sprintf(call, ""))
	if got := a.ended(t, session); !strings.Contains(text, `"error":"connect_required"`) || !strings.Contains(got, "you send Bearer") {
		t.Errorf("a grant before the turn has parked: %s\n%s", text, got)
	}

	disconnect := func() {
		t.Helper()
		if _, err := a.Pool.Exec(t.Context(), `DELETE FROM tool_grants`); err != nil {
			t.Fatal(err)
		}
	}
	disconnect()
	text, session = a.ask(t, fmt.Sprintf(call, ""))
	if _, err := a.Pool.Exec(t.Context(), `INSERT INTO tool_grants (`+columns+`) SELECT * FROM held`); err != nil {
		t.Fatal(err)
	}
	if got := a.ended(t, session); !strings.Contains(text, `"error":"connect_required"`) || !strings.Contains(got, "you send Bearer") {
		t.Errorf("a grant whose replica has died: %s\n%s", text, got)
	}

	disconnect()
	text, session = a.ask(t, fmt.Sprintf(call, ""))
	a.api(t, "DELETE tool-servers/crm", "")
	if got := a.ended(t, session); !strings.Contains(text, `"error":"connect_required"`) || !strings.Contains(got, "Unknown tool") {
		t.Errorf("a removed server: %s\n%s", text, got)
	}
	if status, text := user.open(t, http.MethodGet, link(t, text), "none"); status != http.StatusNotFound {
		t.Errorf("its link: %d %s", status, text)
	}
}

// TestTokensExpireSeveralTimesInATurn lets each call of a turn end the token. The grant is
// refreshed for the next call, and no user is asked.
func TestTokensExpireSeveralTimesInATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(t, nil)
	a.addCRM(t)
	text, session := a.ask(t, `{"command":"@call crm__expire crm__expire crm__expire crm__whoami\n@say Done.","stream":false}`)
	if got := a.ended(t, session); !strings.Contains(text, `"output":"Done."`) || strings.Count(got, `"output":"expired"`) != 3 ||
		!strings.Contains(got, "you send Bearer") {
		t.Errorf("%s\n%s", text, got)
	}
	if n := w.auth.Count("refresh"); n != 3 {
		t.Errorf("%d refreshes", n)
	}
}

// TestTurnsWaitForMoreScopes lets a server need another scope than the grant has. The turn waits
// for a link that asks for it besides the present ones, and a key without config:write is not
// asked.
func TestTurnsWaitForMoreScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(t, nil)
	a.addCRM(t)
	w.auth.SetNeeds("tools:write")
	text, session := a.ask(t, fmt.Sprintf(call, ""))
	if !strings.Contains(text, `"error":"connect_required"`) || !strings.Contains(text, `"scopes":["tools:write"]`) {
		t.Fatalf("%s", text)
	}
	user := a.browser(t)
	at := link(t, text)
	if status, page := user.open(t, http.MethodGet, at, "none"); status != http.StatusOK || !strings.Contains(page, "<dd>tools:write</dd>") {
		t.Errorf("the page: %d %s", status, page)
	}
	if last := user.follow(t, at); !strings.Contains(last, "You can close this window") {
		t.Fatalf("the last page: %s", last)
	}
	if got := a.ended(t, session); !strings.Contains(got, "you send Bearer") || strings.Count(got, "\ntool_use ") != 1 {
		t.Errorf("with the scope: %s", got)
	}
	if got := a.api(t, "GET tool-servers/crm/connections", ""); !strings.Contains(got, `"scopes":["tools:write","tools"]`) {
		t.Errorf("the grant: %s", got)
	}
	w.auth.SetNeeds("tools:admin")
	if got := a.api(t, "POST tool-servers/crm/refresh", ""); !strings.Contains(got, "parley tools connect crm --scope tools:admin") ||
		!strings.Contains(got, "the accepted definitions stay in force, and 2 of 2 tools are usable") {
		t.Errorf("refresh: %s", got)
	}
	chat := *a.Service
	chat.Key = a.Issue(t, a.Workspace, apikey.Chat)
	_, session = (&replica{&chat, w}).ask(t, fmt.Sprintf(call, ""))
	if got := a.ended(t, session); strings.Contains(got, "connect_required") || !strings.Contains(got, "lacks the scopes tools:admin") {
		t.Errorf("a key without config:write: %s", got)
	}
	user.follow(t, link(t, a.api(t, "POST tool-servers/crm/connect?scope=tools:admin", "")))
	if text, _ := a.ask(t, fmt.Sprintf(call, "")); !strings.Contains(text, `"output":"Done."`) {
		t.Errorf("with the administrator's link: %s", text)
	}
	if got := a.api(t, "POST tool-servers/crm/connect?scope=%22", ""); !strings.Contains(got, `"param":"/scope"`) {
		t.Errorf("a scope that is not valid: %s", got)
	}
}
