package rest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/apicheck"
)

// objects creates, in the demo workspace, one object for every path parameter, by the name of the
// parameter; by the name of the operation if the operation needs a special one. A path with an
// unknown parameter fails the tests of the guard.
var objects = map[string]func(testing.TB, *service) string{
	"sessionId":               aSession,
	"toolUseId":               aToolCall,
	"approvalId":              anApproval,
	"answerSecret approvalId": aSecretRequest,
	"rateAnswer sessionId":    func(t testing.TB, s *service) string { return anAnswer(t, s)[0] },
	"forkSession sessionId":   func(t testing.TB, s *service) string { return anAnswer(t, s)[0] },
	"turnId":                  func(t testing.TB, s *service) string { return anAnswer(t, s)[1] },
	"task":                    func(t testing.TB, s *service) string { return anAnswer(t, s)[1] },
	"config":                  func(testing.TB, *service) string { return "no_such_config" }, // a config needs a running task
	"responseId":              func(t testing.TB, s *service) string { return "resp_" + anAnswer(t, s)[1] },
	"callbackId":              aCallback,
	"fileId":                  aFile,
	"chatId":                  aChat,
	"keyId":                   aKey,
	"tokenId":                 func(t testing.TB, s *service) string { return s.token(t, "", "tokens", `{"user":"anna"}`).TokenID },
	"name":                    aCredential,
	"tool":                    func(testing.TB, *service) string { return "no_such_tool" }, // each workspace has the others
	"kind":                    func(testing.TB, *service) string { return "no_such_kind" }, // each workspace has the others
	"toolServer":              aToolServer,
	"provider":                aModelProvider,
	"connectionId":            func(testing.TB, *service) string { return uuid.Nil.String() }, // a connection needs an authorization server
	"allowlistId":             aPattern,
	"skill":                   aSkill,
	"agent":                   anAgent,
	"version":                 func(testing.TB, *service) string { return "2000000001" }, // each agent has version 1
	"workspaceId":             aWorkspace,
	"model":                   func(_ testing.TB, s *service) string { return s.Workspace.Slug },
}

// bodies are valid requests, by operation; {sessionId} is replaced by an object's id. An operation
// that accepts JSON and is not listed fails the tests of the guard.
var bodies = map[string]string{
	"sendMessage":     `{"command":"@text 1 delta","session_id":"{sessionId}"}`,
	"updateSession":   `{"title":"x"}`,
	"decideApproval":  `{"decision":"allow"}`,
	"postToolResults": `{"results":[{"tool_use_id":"call_1","output":"x"}]}`,
	"postLaterResult": `{"output":"x"}`,
	"answerSecret":    `{"action":"skip"}`,
	"createFile":      `{"filename":"a.txt","mime":"text/plain","size":5}`,
	"downloadFiles":   `{"file_id":"{fileId}"}`,
	"rateAnswer":      `{"rating":"good"}`,
	"forkSession":     `{}`,

	"createSessionToken": `{}`,
	"createUserToken":    `{"user":"anna"}`,

	"updateWorkspace": `{"name":"Demo"}`,
	"createKey":       `{"name":"another","scopes":["config:read"]}`,
	"updateKey":       `{"name":"another"}`,
	"rollKey":         `{}`,

	"eraseSession":       `{"session_id":"{sessionId}"}`,
	"createWorkspace":    `{"slug":"demo"}`,
	"putCredential":      `{"allowed_hosts":["api.example.com"]}`,
	"rollCallbackSecret": `{}`,
	"putToolRule":        `{"rule":"ask"}`,
	"putBudget":          `{"max_tokens":5}`,
	"putModelProvider":   `{"base_url":"https://vllm.example.com/v1"}`,
	"testModel":          `{"model":"builtin/guide"}`,
	"addToolServer":      `{"name":"another","url":"https://listen.invalid/"}`,
	"putHTTPTools":       `{"tools":[{"description":"x","http":{"method":"GET","path":"/"}}]}`,
	"checkConfiguration": `{"changes":[]}`,
	"updateToolServer":   `{"enabled":true}`,
	"updateOwnTool":      `{"label":"changes"}`,
	"acceptOwnTool":      `{"hash":"00"}`,
	"testOwnTool":        `{"input":{}}`,
	"addPattern":         `{"pattern":"bash(ls)"}`,
	"previewPattern":     `{"pattern":"bash(ls)"}`,
	"putEgress":          `{"hosts":[]}`,
	"putSkill":           `{"document":"---\nname: triage\ndescription: Sort.\n---\nSort it.\n"}`,
	"publishSkill":       `{}`,
	"createAgent":        `{"name":"analyst"}`,
	"putAgent":           `{}`,
	"putAgentDraft":      `{"instructions":"Help."}`,
	"publishAgent":       `{}`,
	"rollbackAgent":      `{"version":1}`,
	"putDocument":        `{"content":"Trains first."}`,

	"callMCP":              `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	"callA2A":              `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"{sessionId}"}}`,
	"a2aSendMessage":       `{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"@text 1 delta"}]}}`,
	"a2aStreamMessage":     `{"message":{"messageId":"m-2","role":"ROLE_USER","parts":[{"text":"@text 1 delta"}]}}`,
	"a2aCreatePushConfig":  `{"url":"https://listen.invalid/"}`,
	"createChatCompletion": `{"model":"{model}","messages":[{"role":"user","content":"@text 1 delta"}],"session_id":"{sessionId}"}`,
	"createTextCompletion": `{"model":"{model}","prompt":"@text 1 delta","session_id":"{sessionId}"}`,
	"createResponse":       `{"model":"{model}","input":"@text 1 delta","session_id":"{sessionId}"}`,
	"sendChatMessage":      `{"messages":[{"role":"user","parts":[{"type":"text","text":"@text 1 delta"}]}],"session_id":"{sessionId}"}`,
	"runAgent": `{"threadId":"{chatId}","runId":"r","messages":[],"resume":[{"interruptId":"{approvalId}",` +
		`"status":"resolved","payload":{"approved":true}}]}`,
}

// guarded starts a service whose turns need an approval for every tool: the turns that objects
// starts wait, and do not change.
func guarded(t *testing.T) *service { return startTurns(t, nil, asking(time.Hour)) }

func aSession(t testing.TB, s *service) string {
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	st.asked()
	return id
}

// aKey creates a key that an administrator's key may roll.
func aKey(t testing.TB, s *service) string { return s.Issue(t, s.Workspace, apikey.ConfigRead)[4:12] }

var answers sync.Map // by service

// anAnswer returns a session and its turn, which has ended; the same ones each time.
func anAnswer(t testing.TB, s *service) [2]string {
	if known, ok := answers.Load(s); ok {
		return known.([2]string)
	}
	id := sessionOf(t, s.say(t, "@say Done.").rest()[0])
	var messages []struct {
		TurnID string `json:"turn_id"`
	}
	if err := json.Unmarshal(s.get(t, call{path: "sessions/" + id + "/messages"}).Data, &messages); err != nil {
		t.Fatal(err)
	}
	made := [2]string{id, messages[1].TurnID}
	answers.Store(s, made)
	return made
}

func aCredential(t testing.TB, s *service) string {
	s.register(t, "GITHUB_TOKEN")
	return "GITHUB_TOKEN"
}

func aPattern(t testing.TB, s *service) string {
	permissions := permission.New(s.Pool)
	if _, err := permissions.AddRule(t.Context(), permission.Rule{Workspace: s.Workspace.ID, Pattern: "bash(ls)"}); err != nil {
		t.Fatal(err)
	}
	list, err := permissions.List(t.Context(), s.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	return list[0].ID.String()
}

func aSkill(t testing.TB, s *service) string {
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID,
		skill.Upload{Document: "---\nname: triage\ndescription: Sort.\n---\nSort it.\n"}); err != nil {
		t.Fatal(err)
	}
	return "triage"
}

// anAgent creates an agent with a draft.
func anAgent(t testing.TB, s *service) string {
	e := agent.Edit{Workspace: s.Workspace.ID, Name: "support"}
	if _, err := s.Agents.Create(t.Context(), e, agent.Defaults(), ""); err != nil {
		t.Fatal(err)
	}
	_, err := s.Agents.SaveDraft(t.Context(), e, func(d agent.Definition) (agent.Definition, error) {
		d.Instructions = "Be kind."
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.Name
}

// aToolServer registers a server that cannot be reached.
func aToolServer(t testing.TB, s *service) string {
	e := toolset.Entry{Name: "crm", URL: "https://listen.invalid/"}
	if _, _, err := toolset.NewStore(s.Pool).Add(t.Context(), s.Workspace.ID, e, "", nil); err != nil {
		t.Fatal(err)
	}
	return e.Name
}

func aModelProvider(t testing.TB, s *service) string {
	p, err := modelset.New(s.Pool).Set(t.Context(), s.Workspace.ID, modelset.Provider{Name: "house", BaseURL: "https://models.example.com/v1"})
	if err != nil {
		t.Fatal(err)
	}
	return p.Name
}

func aWorkspace(t testing.TB, s *service) string {
	w, err := s.Workspaces.Create(t.Context(), "spare", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return w.ID.String()
}

// aChat creates a chat whose turn waits for an approval.
func aChat(t testing.TB, s *service) string {
	s.say(t, held, `"caller_id":"chat-1"`).asked()
	return "chat-1"
}

func anApproval(t testing.TB, s *service) string { return s.say(t, held).asked().ApprovalID }

// aToolCall creates a call of a caller's tool that waits for its result.
func aToolCall(t testing.TB, s *service) string {
	return s.say(t, `Use get_weather with {"city":"Paris"}`, weather).needs().Calls[0].ToolUseID
}

func aSecretRequest(t testing.TB, s *service) string {
	s.register(t, "STRIPE_KEY")
	return s.say(t, `@call request_secret {"key_name":"STRIPE_KEY","reason":"to refund"}`).asked().ApprovalID
}

// aCallback creates a callback whose delivery fails.
func aCallback(t testing.TB, s *service) string {
	id := s.callback(t, "https://listen.invalid/", held)
	s.await(t, id, "failed", 1)
	return id
}

// aFile creates a file that can be downloaded.
func aFile(t testing.TB, s *service) string { return s.download(t, "a.txt", "Hello").FileID }

// ids are the ids of objects by kind.
type ids map[string]string

// things creates one object of every kind.
func (s *service) things(t testing.TB) ids {
	t.Helper()
	all := make(ids)
	for kind, make := range objects {
		all[kind] = make(t, s)
	}
	return all
}

// nothing returns ids of objects that do not exist.
func nothing() ids {
	all := make(ids)
	for kind := range objects {
		all[kind] = uuid.NewString()
	}
	return all
}

// operation is an operation that needs a key.
type operation struct {
	id, method, template string
	scope                apikey.Scope
	servedBy             string // a protocol; "": the API itself
	body                 string
}

// namesWorkspace reports whether the operation's path names a workspace. Otherwise the key selects
// it.
func (op operation) namesWorkspace() bool { return strings.Contains(op.template, "{id}") }

func (op operation) String() string { return op.method + " " + op.template }

// call returns a request for the operation in a workspace, with the ids of objects.
func (op operation) call(ref string, about ids) call {
	names := []string{"{id}", ref}
	for kind, id := range about {
		if special, ok := about[op.id+" "+kind]; ok {
			id = special
		}
		names = append(names, "{"+kind+"}", id)
	}
	fill := strings.NewReplacer(names...)
	return call{method: op.method, path: fill.Replace(op.template), body: fill.Replace(op.body)}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// operations lists the operations that need a key, from the document: a new operation is in every
// test of the guard automatically.
func (s *service) operations(t testing.TB) []operation {
	t.Helper()
	var ops []operation
	for path, item := range s.client.Transport.(*apicheck.Transport).Doc.Paths.Map() {
		for method, doc := range item.Operations() {
			op := operation{id: doc.OperationID, method: method, template: path, scope: apikey.Scope(doc.Extensions["x-scope"].(string))}
			op.servedBy, _ = doc.Extensions["x-served-by"].(string)
			if op.scope == "none" {
				continue
			}
			if doc.RequestBody != nil {
				good, ok := bodies[op.id]
				if !ok {
					t.Fatalf("%s takes a body: add a valid one to bodies", op)
				}
				op.body = good
			}
			for _, p := range parameter.FindAllStringSubmatch(op.template+op.body, -1) {
				if p[1] != "id" && objects[p[1]] == nil {
					t.Fatalf("%s names a {%s}: add a function that creates one to objects", op, p[1])
				}
			}
			ops = append(ops, op)
		}
	}
	if len(ops) < 5 {
		t.Fatalf("only %d operations", len(ops))
	}
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.String(), b.String()) })
	return ops
}

// rows returns all stored rows, by table, without the columns that reads change.
func (s *service) rows(t testing.TB) map[string]string {
	t.Helper()
	tables, err := s.pool.Query(t.Context(), `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
		AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT LIKE 'river%' AND relname NOT IN ('rate_limits', 'open_streams')`)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	var names []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	all := make(map[string]string)
	for _, name := range names {
		var content json.RawMessage
		err := s.pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT coalesce(json_agg(r ORDER BY r::text), '[]') FROM (
			SELECT to_jsonb(t) - ARRAY['last_used_at', 'lease_until'] AS r FROM %q t) rows`, name)).Scan(&content)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	return all
}

// unchanged fails the test if a row has changed since.
func (s *service) unchanged(t testing.TB, before map[string]string) {
	t.Helper()
	for table, now := range s.rows(t) {
		if now != before[table] {
			t.Errorf("%s has changed from\n%s\nto\n%s", table, before[table], now)
		}
	}
}
