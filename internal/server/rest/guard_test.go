package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/apikey"
)

func TestOnlyAGoodKeyGetsIn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	good := s.Key
	revoked := s.Issue(t, s.Workspace, apikey.All...)
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, revoked[4:12]); err != nil {
		t.Fatal(err)
	}
	const missing, invalid = `Bearer realm="parley"`, `Bearer realm="parley", error="invalid_token"`
	for _, operation := range s.operations(t) {
		op := operation.call("demo", nothing())
		for name, c := range map[string]struct {
			header    []string
			code      string
			challenge string
		}{
			"no key":          {[]string{"Authorization", ""}, "MISSING_API_KEY", missing},
			"another scheme":  {[]string{"Authorization", "Basic dXNlcjpwYXNz"}, "INVALID_API_KEY", invalid},
			"the scheme only": {[]string{"Authorization", "Bearer"}, "INVALID_API_KEY", invalid},
			"no scheme":       {[]string{"Authorization", good}, "INVALID_API_KEY", invalid},
			"nonsense":        {[]string{"Authorization", "Bearer nonsense"}, "INVALID_API_KEY", invalid},
			"a typo":          {[]string{"Authorization", "Bearer " + strings.Replace(good, good[20:22], "zz", 1)}, "INVALID_API_KEY", invalid},
			"a made-up token": {[]string{"Authorization", "Bearer whtok_" + good[4:]}, "INVALID_API_KEY", invalid},
			"a revoked key":   {[]string{"Authorization", "Bearer " + revoked}, "INVALID_API_KEY", invalid},
			"much too long":   {[]string{"Authorization", "Bearer " + strings.Repeat("x", 9000)}, "INVALID_API_KEY", invalid},
		} {
			op.header = c.header
			r := s.get(t, op)
			if r.status != 401 || r.Error.Code != c.code || r.Error.Type != "authentication_error" ||
				r.header.Get("WWW-Authenticate") != c.challenge {
				t.Errorf("%s %s, %s: %d %s, %q", op.method, op.path, name, r.status, r.text, r.header.Get("WWW-Authenticate"))
			}
		}
	}
	if r := s.get(t, call{path: "sessions", header: []string{"Authorization", "bEaReR   " + good}}); r.status != 200 {
		t.Errorf("another spelling of the scheme: %d", r.status)
	}
	two := s.request(t, call{path: "sessions"})
	two.Header.Add("Authorization", "Bearer "+good)
	res, err := s.client.Do(two)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != 401 {
		t.Errorf("two keys: %d", res.StatusCode)
	}
}

// principal is a key with its permissions in the demo workspace.
type principal struct {
	name, key string
	status    int // the status of every response; 0: depends on the scopes
	scopes    apikey.Scopes
}

// answer returns the status that a principal gets for every request to an operation, or 0 if its
// scopes allow the operation. In an operation that names no workspace, another workspace's key acts
// in its own.
func (p principal) answer(op operation) int {
	foreign := p.status == 404
	switch {
	case p.status != 0 && (!foreign || op.namesWorkspace()):
		return p.status
	case !p.scopes.Allows(op.scope):
		return 403
	}
	return 0
}

// principals returns a key with each scope alone, keys with all scopes that are revoked, expired or
// of another workspace, and bearer tokens that are not such keys.
func (s *service) principals(t *testing.T) []principal {
	t.Helper()
	ctx := t.Context()
	other, _ := s.Another(t)
	list := []principal{{name: "no key", key: "-", status: 401}, {name: "a malformed key", key: "prl_nonsense", status: 401}}
	for _, scope := range apikey.All {
		list = append(list, principal{"a key with " + string(scope), s.Issue(t, s.Workspace, scope), 0, apikey.Scopes{scope}})
	}
	// A dead or foreign key is rejected before its scopes count, so it has all of them.
	dead := s.Issue(t, s.Workspace, apikey.All...)
	if err := s.Keys.Revoke(ctx, s.Workspace.ID, dead[4:12]); err != nil {
		t.Fatal(err)
	}
	_, expired, err := s.Keys.Create(ctx, apikey.Grant{Workspace: s.Workspace.ID, Name: "expired", Scopes: apikey.All,
		Life: new(-time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	list = append(list,
		principal{"a revoked key", dead, 401, nil},
		principal{"an expired key", expired, 401, nil},
		principal{"another workspace's key", s.Issue(t, other, apikey.All...), 404, apikey.All},
	)
	_, revoked, err := s.Keys.CreateWebhookToken(ctx, s.Workspace.ID)
	if err == nil {
		_, err = s.Keys.RevokeWebhookToken(ctx, s.Workspace.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := s.Keys.CreateWebhookToken(ctx, s.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := s.Keys.CreateWebhookToken(ctx, other.ID)
	if err != nil {
		t.Fatal(err)
	}
	return append(list,
		principal{"the webhook_token", token, 0, apikey.Scopes{apikey.Chat, apikey.SessionsRead}},
		principal{"a revoked webhook_token", revoked, 401, nil},
		principal{"another workspace's webhook_token", foreign, 404, apikey.Scopes{apikey.Chat, apikey.SessionsRead}},
	)
}

// TestGuard checks every operation with every principal: a scope allows its own operations and
// those of the scopes that it includes, and nothing else. A rejected principal learns nothing and
// changes nothing.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	ops, principals, there := s.operations(t), s.principals(t), s.things(t)
	before := s.rows(t)
	refused, allowed := 0, 0
	for _, op := range ops {
		for _, p := range principals {
			want := p.answer(op)
			if want == 0 {
				continue
			}
			refused++
			c := op.call("demo", there)
			c.key = p.key
			r := s.get(t, c)
			code := map[int]string{401: "INVALID_API_KEY", 403: "INSUFFICIENT_SCOPE", 404: "WORKSPACE_NOT_FOUND"}[want]
			if p.key == "-" {
				code = "MISSING_API_KEY"
			}
			if r.status != want || r.Error.Code != code || r.header.Get("RateLimit") != "" {
				t.Errorf("%s with %s: %d %s; want %d %s", op, p.name, r.status, r.text, want, code)
			}
			if want == 403 && (r.Error.RequiredScope != string(op.scope) || r.header.Get("X-Key-Scopes") != p.scopes.String() ||
				r.header.Get("X-Accepted-Scopes") != op.scope.Accepted().String() ||
				r.header.Get("WWW-Authenticate") != fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, op.scope)) {
				t.Errorf("%s with %s: %s %v", op, p.name, r.text, r.header)
			}
		}
	}
	s.unchanged(t, before)
	for _, op := range ops {
		for _, p := range principals {
			if p.answer(op) != 0 {
				continue
			}
			if allowed++; strings.HasSuffix(op.id, "WebhookToken") {
				continue // it would end that of a principal
			}
			if op.id == "pauseServer" || op.id == "pauseWorkspace" {
				continue // the calls after it would get AGENTS_STOPPED; admin.TestAgentsArePaused calls it
			}
			c := op.call("demo", nothing())
			c.key = p.key
			if r := s.get(t, c); r.status == 401 || r.status == 403 || op.namesWorkspace() && r.Error.Code == "WORKSPACE_NOT_FOUND" ||
				r.header.Get("RateLimit") == "" {
				t.Errorf("%s with %s: %d %s", op, p.name, r.status, r.text)
			}
		}
	}
	if want := len(ops) * len(principals); refused+allowed != want || allowed < len(ops) {
		t.Errorf("%d refused and %d allowed, of %d", refused, allowed, want)
	}
}

// TestScopesOpenTheseOperations lists the operations of each scope: a key with only that scope may
// call these operations and no others. TestGuard calls them all. The results of tools that return 202
// need tools:write; those of a caller's own tools come with a message, so they need chat.
func TestScopesOpenTheseOperations(t *testing.T) {
	t.Parallel()
	const files = "downloadFiles getFile listFiles listTools"
	const reads = "diffAgent getAgent getAgentDraft getAgentVersion getDocument getEgress getLimits getSkill getToolServer getWorkspace " +
		"listAgentVersions listAgents " +
		"listAllowlist listBudgets listConnections listCredentials listDocuments listEgressRequests listModelPrices listModelProviders " +
		"listSkillChanges listSkills listToolServers previewPattern"
	const writes = "acceptOwnTool addPattern addToolServer archiveSkill checkConfiguration connectToolServer createAgent deleteAgent " +
		"deleteAgentDraft deleteConnection deleteDocument deleteToolRule deleteToolServer publishAgent publishSkill putAgent putAgentDraft " +
		"putDocument putEgress putHTTPTools putSkill putToolRule refreshToolServer revokePattern rollbackAgent testModel testOwnTool " +
		"updateOwnTool updateToolServer"
	const administers = "createKey deleteBudget deleteCredential deleteModelProvider eraseSession getCallbackSecret getContext getKey " +
		"getWebhookToken listAdminLog listErasures listKeys " +
		"pauseWorkspace putBudget putCredential putModelProvider resumeWorkspace revokeKey revokeWebhookToken rollCallbackSecret " +
		"rollKey rollWebhookToken showCallbackSecret updateKey updateWorkspace"
	const overA2A = "a2aCancelTask a2aCreatePushConfig a2aDeletePushConfig a2aExtendedCard a2aGetPushConfig a2aGetTask " +
		"a2aListPushConfigs a2aListTasks " +
		"a2aSendMessage a2aStreamMessage a2aSubscribe a2aSubscribeByPost callA2A"
	const serves = "createWorkspace deleteWorkspace getActivity getRetention getSystem listServerLog listWorkspaces pauseServer resumeServer"
	want := map[apikey.Scope]string{
		apikey.Chat: "cancelChat cancelResponse cancelTurn createChatCompletion createResponse createSessionToken createTextCompletion " +
			"createUserToken decideApproval deleteResponse deleteSession forkSession getModel getResponse listModels listTokens " +
			"postToolResults rateAnswer redeliverCallback revokeToken runAgent " +
			"sendChatMessage sendMessage updateSession",
		apikey.SessionsRead: "getApproval getCallback getSession getSessionFile listApprovals listCallbacks listFeedback listMessages " +
			"listSessionFiles listSessions resumeChat resumeStream",
		apikey.ToolsRead: files, apikey.ToolsWrite: sorted(files, "postLaterResult"),
		apikey.FilesWrite: "createFile", apikey.FilesWriteUnrestricted: "createFile",
		apikey.Secret: "answerSecret", apikey.WikiWrite: "",
		apikey.MCP: "callMCP", apikey.MCPRead: "callMCP", apikey.A2A: overA2A,
		apikey.ConfigRead: sorted(reads), apikey.ConfigWrite: sorted(reads, writes),
		apikey.Admin: sorted(reads, writes, administers), apikey.ServerAdmin: sorted(serves),
	}
	ops, got := start(t, nil).operations(t), make(map[apikey.Scope]string)
	for _, scope := range apikey.All {
		var ids []string
		for _, op := range ops {
			if (apikey.Scopes{scope}).Allows(op.scope) {
				ids = append(ids, op.id)
			}
		}
		slices.Sort(ids)
		got[scope] = strings.Join(ids, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the scopes allow other operations (-want +got):\n%s", diff)
	}
}

// sorted joins lists of operations.
func sorted(lists ...string) string {
	names := strings.Fields(strings.Join(lists, " "))
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestWorkspacesAreApart checks that an object of another workspace gets the response for a missing
// one in status, code and shape, and is not changed.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	other, foreign := s.Another(t)
	there := s.things(t)
	plain := func(r reply, about ids) string { // without the parts that differ between any two responses
		names := []string{r.RequestID, "", r.header.Get("X-Request-Id"), ""}
		for _, id := range about {
			names = append(names, id, "")
		}
		return strings.NewReplacer(names...).Replace(fmt.Sprint(r.status, r.text))
	}
	ops := slices.DeleteFunc(s.operations(t), func(op operation) bool { return !op.namesWorkspace() })
	before := s.rows(t)
	for _, ref := range []string{"demo", s.Workspace.ID.String(), strings.ToUpper(s.Workspace.ID.String())} {
		for _, op := range ops {
			c := op.call(ref, there)
			c.key = foreign
			r := s.get(t, c)
			c.path = strings.Replace(c.path, ref, "no-such-workspace", 1)
			if none := s.get(t, c); r.status != 404 || r.Error.Code != "WORKSPACE_NOT_FOUND" || plain(r, there) != plain(none, there) {
				t.Errorf("%s: %s, but of nothing: %s", op, plain(r, there), plain(none, there))
			}
		}
	}
	named := 0
	for _, ref := range []string{"another", other.ID.String()} {
		for _, op := range ops {
			if op.id == "putCredential" || op.id == "putSkill" || op.id == "putModelProvider" {
				continue // a name is free in every workspace
			}
			absent := nothing()
			c, without := op.call(ref, there), op.call(ref, absent)
			if c.path == without.path && c.body == without.body {
				continue // it names no object
			}
			named++
			c.key, without.key = foreign, foreign
			r, none := s.get(t, c), s.get(t, without)
			if op.servedBy != "" { // its protocol has its own not-found response
				if plain(r, there) != plain(none, absent) {
					t.Errorf("%s: %s, but of nothing: %s", op, plain(r, there), plain(none, absent))
				}
				continue
			}
			if r.status != 404 || !strings.HasSuffix(r.Error.Code, "_NOT_FOUND") || r.Error.Code == "WORKSPACE_NOT_FOUND" ||
				plain(r, there) != plain(none, absent) {
				t.Errorf("%s: %s, but of nothing: %s", op, plain(r, there), plain(none, absent))
			}
		}
	}
	s.unchanged(t, before)
	for _, op := range ops { // lists return only the workspace's own objects
		if op.method != http.MethodGet || strings.Count(op.template, "{") != 1 || op.servedBy != "" {
			continue
		}
		c := op.call("another", there)
		c.key = foreign
		r := s.get(t, c)
		for _, id := range there {
			if r.status != 200 || strings.Contains(r.text, id) {
				t.Errorf("%s: %d %s", op, r.status, r.text)
			}
		}
	}
	if named < 2 {
		t.Errorf("only %d requests name an object", named)
	}
}

func TestOneCallerInTwoWorkspacesIsTwo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, foreign := s.Another(t)
	message := `{"command":"@text 1 delta","caller_id":"anna"}`
	here := s.open(t, call{method: "POST", path: "messages", body: message}).rest()
	there := s.open(t, call{method: "POST", path: "/api/v1/workspaces/another/messages", body: message, key: foreign}).rest()
	again := s.open(t, call{method: "POST", path: "messages", body: message}).rest()
	if a, b, c := sessionOf(t, here[0]), sessionOf(t, there[0]), sessionOf(t, again[0]); a == b || a != c {
		t.Errorf("sessions %s, %s, %s", a, b, c)
	}
}

func TestLoopbackKeyDoesNotPassAProxy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, key, err := s.Keys.Create(t.Context(), apikey.Grant{Workspace: s.Workspace.ID, Name: "dev", Scopes: apikey.All, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{path: "sessions", key: key}); r.status != 200 {
		t.Errorf("from this machine: %d", r.status)
	}
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host"} {
		if r := s.get(t, call{path: "sessions", key: key, header: []string{header, "127.0.0.1"}}); r.status != 401 ||
			r.Error.Code != "INVALID_API_KEY" {
			t.Errorf("with %s: %d", header, r.status)
		}
	}
}

// TestOrderOfChecks checks the order: authentication first, then the workspace, the scope, the
// quota and the request.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	reader, busy := s.Issue(t, s.Workspace, apikey.SessionsRead), s.Issue(t, s.Workspace, apikey.All...)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO rate_limits VALUES ($1, 'messages', now() + interval '1 hour')`,
		busy[4:12]); err != nil {
		t.Fatal(err)
	}
	broken := call{method: "POST", path: "messages", body: "{", header: []string{"Content-Type", "text/plain", "Accept", "image/png"}}
	for _, step := range []struct {
		status int
		mend   func(*call)
	}{
		{401, func(c *call) { c.key, c.path = "nonsense", "/api/v1/workspaces/nowhere/messages" }},
		{404, func(c *call) { c.key = reader }},
		{403, func(c *call) { c.path = "messages" }},
		{429, func(c *call) { c.key = busy }},
		{406, func(c *call) { c.key = "" }},
		{415, func(c *call) { c.header = c.header[:2] }},
		{400, func(c *call) { c.header = nil }},
		{404, func(c *call) { c.body = `{"command":"x","session_id":"` + uuid.NewString() + `"}` }},
	} {
		step.mend(&broken)
		if r := s.get(t, broken); r.status != step.status {
			t.Errorf("%d, want %d: %s", r.status, step.status, r.text)
		}
	}
	if r := s.get(t, call{method: http.MethodGet, path: "sessions/nonsense/events?last_event_id=x"}); r.status != 400 {
		t.Errorf("an invalid cursor for a missing session: %d", r.status)
	}
}
