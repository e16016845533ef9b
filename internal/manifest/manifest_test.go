package manifest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/manifest"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// administer returns a client of a server, which compares every response with the OpenAPI document.
func administer(t *testing.T) client.Admin {
	t.Helper()
	s := apitest.New(t, apitest.Options{})
	srv := s.Server(t, nil)
	s.Serve(t, srv.NewRouter(admin.New(srv, s.Administration())))
	c, err := client.New(client.Options{URL: s.URL, Workspace: "demo", Key: s.Key, HTTP: &http.Client{Transport: s.Checked(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Admin()
}

func parse(t *testing.T, source string) manifest.File {
	t.Helper()
	none := func(name string) ([]byte, error) { return nil, errors.New("no file " + name) }
	f, err := manifest.Parse([]byte("parley: 1\n"+source), none, func(string) ([]string, error) { return nil, errors.New("no folder") })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func plan(t *testing.T, a client.Admin, source string) *manifest.Plan {
	t.Helper()
	p, err := manifest.NewPlan(t.Context(), a, parse(t, source), false)
	if err != nil || len(p.Changes) == 0 {
		t.Fatalf("the plan of %s: %+v, %v", source, p, err)
	}
	return p
}

func ruleOf(t *testing.T, a client.Admin, name string) string {
	t.Helper()
	tools, err := a.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if tool.Name == name && tool.Rule != nil {
			return *tool.Rule
		}
	}
	return ""
}

// TestApplyOverwritesNoOtherChange has two administrators apply at once: a plan from a configuration
// that has changed makes no change, and one during which an object changes stops before that object.
// Of many plans from one configuration that change one object, one succeeds.
func TestApplyOverwritesNoOtherChange(t *testing.T) {
	t.Parallel()
	a := administer(t)
	quiet := func(manifest.Change) {}
	first, second := plan(t, a, "tool_rules: {bash: deny, read: deny}"), plan(t, a, "tool_rules: {bash: ask, write: ask}")
	if err := first.Apply(t.Context(), a, quiet); err != nil {
		t.Fatal(err)
	}
	if err := second.Apply(t.Context(), a, quiet); !errors.Is(err, manifest.ErrChanged) || !manifest.IsConflict(err) {
		t.Errorf("the second plan: %v", err)
	}
	if ruleOf(t, a, "bash") != "deny" || ruleOf(t, a, "write") != "" {
		t.Error("the second plan made changes")
	}

	third := plan(t, a, "tool_rules: {bash: allow, read: allow, write: allow}")
	err := third.Apply(t.Context(), a, func(c manifest.Change) {
		if c.Name != "bash" {
			return
		}
		if _, err := a.PutToolRule(t.Context(), "read", "ask"); err != nil { // another administrator
			t.Error(err)
		}
	})
	stopped, ok := errors.AsType[*manifest.Stopped](err)
	if !ok || !manifest.IsConflict(err) || len(stopped.Made) != 1 || stopped.At.Name != "read" {
		t.Errorf("the third plan: %v", err)
	}
	if ruleOf(t, a, "read") != "ask" || ruleOf(t, a, "write") != "" {
		t.Errorf("read is %s, write %s", ruleOf(t, a, "read"), ruleOf(t, a, "write"))
	}

	plans := make([]*manifest.Plan, 6)
	for i := range plans {
		plans[i] = plan(t, a, "budgets: [{kind: workspace, max_tokens: "+strings.Repeat("7", i+1)+"}]")
	}
	failures := make([]error, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() { failures[i] = p.Apply(t.Context(), a, quiet) })
	}
	wait.Until(t, "all plans", wg.Wait)
	won := 0
	for i, err := range failures {
		switch {
		case err == nil:
			won++
			if budgets, err := a.Budgets(t.Context()); err != nil || len(budgets) != 1 ||
				len(strings.Trim(string(encode(t, budgets[0].MaxTokens)), "7")) != 0 || len(encode(t, budgets[0].MaxTokens)) != i+1 {
				t.Errorf("the budget is not that of plan %d: %+v, %v", i, budgets, err)
			}
		case !manifest.IsConflict(err):
			t.Errorf("plan %d: %v", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d plans from one configuration succeeded", won, len(plans))
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSchemaDescribesTheFile validates an export and files with a fault.
func TestSchemaDescribesTheFile(t *testing.T) {
	t.Parallel()
	a := administer(t)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(manifest.Schema))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/configuration-file.md")
	if err != nil || !strings.Contains(string(page), "```json\n"+manifest.Schema+"```\n") {
		t.Errorf("docs/reference/configuration-file.md does not have schema.json: %v", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("parley.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("parley.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(source string) error {
		var v any
		if err := yaml.Unmarshal([]byte(source), &v); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encode(t, v))))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	p := plan(t, a, `
agents: {support: {instructions: Help., effort: low, fallback_models: [builtin/guide, ollama/llama3.2], tools: {read: read_only}, limits: {max_turns: 3}}}
tool_rules: {bash: deny}
allowlist: [bash(git diff *)]
egress: {public: true, hosts: [a.example.com]}
secrets: {A_KEY: {hosts: [a.example.com], in_body: true}}
budgets: [{kind: user, subject: anna, max_cost_usd: 1.5}]
documents: {wiki/a.md: "# A"}`)
	if err := p.Apply(t.Context(), a, func(manifest.Change) {}); err != nil {
		t.Fatal(err)
	}
	f, _, err := manifest.Read(t.Context(), a, true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "history_tokens") {
		t.Errorf("the export has history_tokens, which is not set:\n%s", text)
	}
	if !strings.Contains(text, "fallback_models: [builtin/guide, ollama/llama3.2]") {
		t.Errorf("the export lacks the fallback models:\n%s", text)
	}
	if err := validate(text); err != nil {
		t.Errorf("the export does not match the schema: %v\n%s", err, text)
	}
	for _, wrong := range []string{"parley: 2", "parley: 1\nagent: {}", "parley: 1\ntool_rules: {bash: maybe}",
		"parley: 1\nsecrets: {A_KEY: {value: x}}", "parley: 1\nworkspace: {open_streams: -1}"} {
		if validate(wrong) == nil {
			t.Errorf("the schema accepts %q", wrong)
		}
	}
}

// TestManyDocumentsAreCheckedInParts plans documents that one request cannot hold: only the document
// with a wrong path is rejected.
func TestManyDocumentsAreCheckedInParts(t *testing.T) {
	t.Parallel()
	a := administer(t)
	f := parse(t, "agents: {support: {instructions: x}}")
	text := manifest.Text{Value: strings.Repeat("x", 1<<20)}
	f.Documents = map[string]manifest.Text{"/zz": text}
	for i := range 9 {
		f.Documents["wiki/"+strings.Repeat("a", i+1)+".md"] = text
	}
	p, err := manifest.NewPlan(t.Context(), a, f, false)
	if err != nil {
		t.Fatal(err)
	}
	rejected, err := p.Check(t.Context(), a)
	if err != nil || len(rejected) != 1 || rejected[0].At.Name != "/zz" {
		t.Errorf("%d rejections, %v", len(rejected), err)
	}
	if list, err := a.Documents(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("%d documents, %v", len(list), err)
	}
}
