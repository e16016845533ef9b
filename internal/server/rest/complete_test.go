package rest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// TestDocumentNamesEveryCode checks that every code is documented under its status, that the list
// of codes equals those of the operations, and that each operation lists the errors that it can
// return.
func TestDocumentNamesEveryCode(t *testing.T) {
	t.Parallel()
	doc := document(t, start(t, nil))
	used := map[string]bool{"NOT_FOUND": true} // no operation lists it
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			want := []string{"405", "500"}
			if op.Extensions["x-served-by"] == nil {
				want = append(want, "406")
			}
			if op.Extensions["x-scope"] != "none" {
				if want = append(want, "401", "403", "503"); strings.Contains(path, "{id}") {
					want = append(want, "404")
				}
				if !apikey.Scope(op.Extensions["x-scope"].(string)).Known() {
					t.Errorf("%s: scope %v", name, op.Extensions["x-scope"])
				}
			} else if op.Security == nil || len(*op.Security) != 0 && len((*op.Security)[0]) != 0 {
				t.Errorf("%s: public, but requires a key", name)
			}
			for _, status := range want {
				if op.Responses.Value(status) == nil {
					t.Errorf("%s: no %s", name, status)
				}
			}
			for status, ref := range op.Responses.Map() {
				if ref.Value.Headers["X-Request-Id"] == nil {
					t.Errorf("%s: %s without X-Request-Id", name, status)
				}
				if status[0] < '4' {
					continue
				}
				for _, code := range codesOf(t, ref.Value) {
					used[code] = true
					if got := strconv.Itoa(fault.Code(code).Status()); got != status {
						t.Errorf("%s: %s is documented under %s, and sent with %s", name, code, status, got)
					}
				}
			}
		}
	}
	var listed []string
	for _, v := range doc.Components.Schemas["ErrorCode"].Value.Enum {
		listed = append(listed, v.(string))
		if !slices.Contains(fault.Codes(), fault.Code(v.(string))) {
			t.Errorf("%s is not a known code", v)
		}
		if !used[v.(string)] {
			t.Errorf("%s is listed, but no response has it", v)
		}
	}
	for code := range used {
		if !slices.Contains(listed, code) {
			t.Errorf("%s is not listed", code)
		}
	}
	for _, code := range fault.Codes() {
		if !slices.Contains(listed, string(code)) {
			t.Errorf("%s is a code, but not listed", code)
		}
	}
	var stream []event.Code
	for _, v := range doc.Components.Schemas["StreamErrorCode"].Value.Enum {
		stream = append(stream, event.Code(v.(string)))
	}
	if !slices.Equal(stream, event.Codes) {
		t.Errorf("the codes of an error event are documented as %v, and are %v", stream, event.Codes)
	}
}

// codesOf returns the codes to which an error response narrows its envelope. A response of another
// protocol has no envelope.
func codesOf(t *testing.T, r *openapi3.Response) (codes []string) {
	t.Helper()
	ref := r.Content["application/json"].Schema
	if slices.Contains([]string{"#/components/schemas/OpenAIError", "#/components/schemas/RpcResponse", "#/components/schemas/A2AFailure"},
		ref.Ref) {
		return nil
	}
	envelope := ref.Value
	if len(envelope.OneOf) > 0 { // an error before the protocol layer, or of the protocol
		envelope = envelope.OneOf[0].Value
	}
	data, err := json.Marshal(envelope.AllOf[1].Value.Properties["error"].Value.AllOf[1].Value)
	if err != nil {
		t.Fatal(err)
	}
	var narrow struct {
		Properties struct{ Code struct{ Enum []string } }
	}
	if err := json.Unmarshal(data, &narrow); err != nil || len(narrow.Properties.Code.Enum) == 0 {
		t.Fatalf("%s: %v", data, err)
	}
	return narrow.Properties.Code.Enum
}

// TestEveryCodeIsSent checks that every documented code is sent and that every code in the source
// is documented.
func TestEveryCodeIsSent(t *testing.T) {
	t.Parallel()
	declared, err := os.ReadFile("../../fault/code.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t(\w+) +Code = "\w+"$`).FindAllStringSubmatch(string(declared), -1)
	if len(names) != len(fault.Codes()) {
		t.Fatalf("found %d declarations of %d codes", len(names), len(fault.Codes()))
	}
	var source strings.Builder
	err = filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "../../fault/") {
			return err
		}
		text, err := os.ReadFile(file)
		source.Write(text)
		if made := regexp.MustCompile(`fault\.(Code|New)\("|fault\.Error\{Code: "`).Find(text); made != nil {
			t.Errorf("%s uses an undeclared code: %s", file, made)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !regexp.MustCompile(`fault\.` + name[1] + `\b`).MatchString(source.String()) {
			t.Errorf("nothing fails with %s", name[1])
		}
	}
	if !strings.Contains(source.String(), "fault.Invalid(") {
		t.Error("nothing fails with INVALID_REQUEST")
	}
}

// TestDocumentIsComplete checks that every operation documents its purpose, its parameters, its
// scope, the quota headers and whether it may be repeated.
func TestDocumentIsComplete(t *testing.T) {
	t.Parallel()
	doc := document(t, start(t, nil))
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil {
				t.Errorf("%s: summary %q, description %q, tags %v", name, op.Summary, op.Description, op.Tags)
			}
			once := false
			for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
				once = once || p.Value.Name == "Idempotency-Key"
				if p.Value.Description == "" {
					t.Errorf("%s: %s has no description", name, p.Value.Name)
				}
			}
			scope := op.Extensions["x-scope"].(string)
			if scope != "none" {
				if s := *op.Security; len(s) != 1 || !slices.Equal(s[0]["key"], []string{scope}) {
					t.Errorf("%s: the scope %s, and security %v", name, scope, s)
				}
				if r := op.Responses.Value("429"); r == nil || r.Value.Headers["Retry-After"] == nil {
					t.Errorf("%s: no 429 with Retry-After", name)
				}
			}
			if reused := op.Responses.Value("422"); once && op.Extensions["x-served-by"] != "openai" && (reused == nil ||
				!slices.Equal(codesOf(t, reused.Value), []string{"IDEMPOTENCY_KEY_REUSED"})) {
				t.Errorf("%s: no 422 for a reused Idempotency-Key", name)
			}
			for status, ref := range op.Responses.Map() {
				h := ref.Value.Headers
				if replayed := h["Idempotent-Replayed"] != nil; status[0] == '2' && replayed != once {
					t.Errorf("%s: %s documents Idempotent-Replayed: %v", name, status, replayed)
				}
				early := status == "401" || status == "403" || status == "405" || // before the quota is checked
					status == "404" && strings.Contains(path, "{id}") && slices.Equal(codesOf(t, ref.Value), []string{"WORKSPACE_NOT_FOUND"})
				if counted := h["RateLimit"] != nil && h["RateLimit-Policy"] != nil; scope != "none" && counted == early {
					t.Errorf("%s: %s documents the quota: %v", name, status, counted)
				}
			}
		}
	}
}

// TestDocumentedScopes compares the documented table of scopes with the guard's.
func TestDocumentedScopes(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(document(t, start(t, nil)).Info.Description, "| scope | allows | includes |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	includes := make(map[apikey.Scope]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); strings.Contains(cells[1], "`") {
			includes[apikey.Scope(strings.Trim(cells[1], " `"))] = strings.ReplaceAll(strings.TrimSpace(cells[3]), "`", "")
		}
	}
	for _, scope := range apikey.All {
		got, ok := includes[scope]
		if want := (apikey.Scopes{scope}).Expand(); !ok || len(want) != 1+len(strings.Fields(got)) {
			t.Errorf("%s is documented to include %q, and includes %v", scope, got, want)
		}
		for _, other := range strings.Split(got, ", ") {
			if other != "" && !scope.Includes(apikey.Scope(other)) {
				t.Errorf("%s does not include %s", scope, other)
			}
		}
	}
	if len(includes) != len(apikey.All) {
		t.Errorf("%d scopes are documented, of %d", len(includes), len(apikey.All))
	}
}

// TestDocumentedDecisions compares the documented decision with the accepted and returned one: only
// a denial has a reason, and the answer to a secret request names the secret.
func TestDocumentedDecisions(t *testing.T) {
	t.Parallel()
	doc := document(t, start(t, nil))
	for _, body := range []map[string]any{{"decision": "allow", "reason": "x"}, {"decision": "deny", "allowlist_pattern": "x"},
		{"decision": "perhaps"}} {
		if doc.CheckSchema("DecisionRequest", body) == nil {
			t.Errorf("%v is documented as a decision", body)
		}
	}
	if err := doc.CheckSchema("DecisionRequest", map[string]any{"decision": "deny", "reason": "x"}); err != nil {
		t.Errorf("a denial with its reason is not documented: %v", err)
	}
	answer := doc.Paths.Value("/api/v1/workspaces/{id}/approvals/{approvalId}/secret").Post.Responses.Value(
		"200").Value.Content["application/json"]
	data := answer.Example.(map[string]any)["data"].(map[string]any)
	if data["kind"] != "secret" || data["key_name"] != "STRIPE_KEY" {
		t.Errorf("the answer to a secret is shown as %v", data)
	}
}

// TestExamplesAreTrue compares every example with a real response, down to the last member.
func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	doc := document(t, start(t, nil))
	examples := 0
	check := func(where string, content openapi3.Content) {
		for _, media := range content {
			all := map[string]any{}
			if media.Example != nil {
				all["example"] = media.Example
			}
			for name, ref := range media.Examples {
				all[name] = ref.Value.Value
			}
			for name, value := range all {
				examples++
				if err := media.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
					t.Errorf("%s, %s: %v", where, name, err)
				}
			}
		}
	}
	items := doc.Paths.Map()
	for name, item := range doc.Webhooks {
		items[name] = item
	}
	for path, item := range items {
		for method, op := range item.Operations() {
			if op.RequestBody != nil {
				check(method+" "+path, op.RequestBody.Value.Content)
			}
			for status, ref := range op.Responses.Map() {
				check(method+" "+path+" "+status, ref.Value.Content)
			}
		}
	}
	if examples < 50 {
		t.Errorf("only %d examples", examples)
	}
	for _, f := range doc.Components.Schemas["StreamFrame"].Value.OneOf {
		name := f.Value.Properties["event"].Value.Enum[0].(string)
		example := doc.Components.Examples[name]
		if example == nil {
			t.Errorf("no example of a frame %s", name)
		} else if err := doc.CheckFrame(example.Value.Value.(map[string]any)); err != nil {
			t.Errorf("example of a frame %s: %v", name, err)
		}
	}
}

// table returns the cells of a page's table, by its header.
func table(t *testing.T, page, head string) [][]string {
	t.Helper()
	text, err := docs.Files.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), head+"\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	var all [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|--") {
			all = append(all, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	if len(all) < 5 {
		t.Fatalf("%s has no table %s", page, head)
	}
	return all
}

// TestPageNamesEverything checks that the page about the API names exactly the existing calls,
// scopes and codes.
func TestPageNamesEverything(t *testing.T) {
	t.Parallel()
	var want, got []string
	for path, item := range document(t, start(t, nil)).Paths.Map() {
		for method, op := range item.Operations() {
			path := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(path, ":$1")
			want = append(want, method+" "+path+" "+op.Extensions["x-scope"].(string))
		}
	}
	for _, row := range table(t, "reference/api.md", "| call | scope | what it does |") {
		got = append(got, row[0]+" "+row[1])
	}
	for _, code := range fault.Codes() {
		want = append(want, strconv.Itoa(code.Status())+" "+string(code))
	}
	for _, row := range table(t, "reference/api.md", "| status | codes |") {
		for code := range strings.SplitSeq(row[1], ", ") {
			got = append(got, row[0]+" "+code)
		}
	}
	for _, scope := range apikey.All {
		want = append(want, "scope "+string(scope))
	}
	for _, row := range table(t, "reference/api.md", "| scope | allows |") {
		got = append(got, "scope "+row[0])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page differs from the document (-document +page):\n%s", diff)
	}
}
