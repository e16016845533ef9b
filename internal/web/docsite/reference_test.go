package docsite_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/web/docsite"
)

func reference(t *testing.T) (*docsite.Reference, *openapi3.T) {
	t.Helper()
	document, err := rest.Document(server.Config{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := docsite.NewReference(document, "/docs/api")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	return r, parsed
}

// TestReferenceHasEveryOperation compares the reference with the document as another library reads
// it: operations, scopes, parameters, media types, examples, statuses and codes.
func TestReferenceHasEveryOperation(t *testing.T) {
	t.Parallel()
	r, doc := reference(t)
	if r.Version != "1.2.3" || len(r.Limits) < 40 || len(r.Headings) < 10 {
		t.Errorf("version %s, %d limits, %d headings", r.Version, len(r.Limits), len(r.Headings))
	}
	listed := 0
	for _, tag := range r.Tags {
		listed += len(tag.Operations)
		if tag.Description == "" {
			t.Errorf("tag %s has no description", tag.Name)
		}
	}
	total, examples, codes := 0, 0, 0
	check := func(path string, item *openapi3.PathItem) {
		for method, want := range item.Operations() {
			total++
			got := r.Operation(want.OperationID)
			if got == nil {
				t.Errorf("%s %s is missing", method, path)
				continue
			}
			scope, _ := want.Extensions["x-scope"].(string)
			if got.Method != method || got.RequestPath != path || got.Summary != want.Summary || got.Scope != strings.TrimPrefix(scope, "none") ||
				!strings.Contains(got.Description, strings.TrimSpace(want.Description)) || got.Tag != want.Tags[0] {
				t.Errorf("%s %s is %+v", method, path, got)
			}
			if len(got.Parameters) != len(want.Parameters)+len(item.Parameters) {
				t.Errorf("%s has %d parameters", got.ID, len(got.Parameters))
			}
			if (got.Body != nil) != (want.RequestBody != nil) {
				t.Errorf("%s: body %v", got.ID, got.Body)
			} else if got.Body != nil {
				examples += compareContents(t, got.ID, got.Body.Contents, want.RequestBody.Value.Content)
			}
			if len(got.Responses) != want.Responses.Len() {
				t.Errorf("%s has %d responses", got.ID, len(got.Responses))
			}
			for _, response := range got.Responses {
				codes += len(response.Codes)
				examples += compareContents(t, got.ID+" "+response.Status, response.Contents, want.Responses.Value(response.Status).Value.Content)
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		check(path, item)
	}
	for name, item := range doc.Webhooks {
		check(name, item)
	}
	if total != listed || len(doc.Webhooks) < 4 {
		t.Errorf("%d operations, of them %d webhooks; %d are listed", total, len(doc.Webhooks), listed)
	}
	if examples < 60 || codes < 300 {
		t.Errorf("only %d examples and %d codes were compared", examples, codes)
	}
}

func compareContents(t *testing.T, at string, got []docsite.Content, want openapi3.Content) (examples int) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d media types", at, len(got))
	}
	for _, c := range got {
		media := want[c.MediaType]
		if media == nil {
			t.Errorf("%s: unknown media type %s", at, c.MediaType)
			continue
		}
		values := make(map[string]any)
		if media.Example != nil {
			values["example"] = media.Example
		}
		for name, e := range media.Examples {
			values[name] = e.Value.Value
		}
		for _, e := range c.Examples {
			var value any
			if err := json.Unmarshal([]byte(e.Value), &value); err != nil {
				t.Errorf("%s: example %s: %v", at, e.Name, err)
			} else if diff := cmp.Diff(values[e.Name], value); diff != "" {
				t.Errorf("%s: example %s: %s", at, e.Name, diff)
			}
			examples++
		}
		if len(c.Examples) != len(values) {
			t.Errorf("%s has %d examples, not %d", at, len(c.Examples), len(values))
		}
		if media.Schema != nil && c.Schema.Type == "" {
			t.Errorf("%s: %s has no type", at, c.MediaType)
		}
	}
	return examples
}

func TestSchemasAreDescribed(t *testing.T) {
	t.Parallel()
	r, _ := reference(t)
	send := r.Operation("sendMessage")
	fields := make(map[string]docsite.Field)
	for _, f := range send.Body.Contents[0].Schema.Fields {
		fields[f.Name] = f
	}
	if f := fields["command"]; f.Type != "string" || f.Required || !slices.Equal(f.Rules, []string{"1 to 200000 characters"}) {
		t.Errorf("command: %+v", f)
	}
	if f := fields["multitask_strategy"]; !slices.Equal(f.Values, []string{"reject", "enqueue", "interrupt"}) {
		t.Errorf("multitask_strategy: %+v", f)
	}
	if f := fields["attachments"]; f.Type != "array of objects" || len(f.Fields) != 1 || f.Fields[0].Type != "UUID" || !f.Fields[0].Required {
		t.Errorf("attachments: %+v", f)
	}
	if f := fields["callback"]; f.Type != "URL or object" || len(f.Variants) != 2 {
		t.Errorf("callback: %+v", f)
	}
	for _, response := range send.Responses {
		if response.Status == "400" && !slices.Contains(response.Codes, "UNKNOWN_SKILL") {
			t.Errorf("codes of 400: %q", response.Codes)
		}
	}
	want := `curl -N "http://127.0.0.1:8080/api/v1/workspaces/demo/messages" \
  -H "Authorization: Bearer $PARLEY_API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{
  "command": "What can you do?"
}'`
	if diff := cmp.Diff(want, send.Curl("http://127.0.0.1:8080")); diff != "" {
		t.Error(diff)
	}
	if got := r.Operation("listMessages").Curl(""); !strings.HasPrefix(got, `curl "/api/v1/workspaces/demo/sessions/$SESSION_ID/messages"`) {
		t.Error(got)
	}
	if near := r.Nearest("sendmesage"); len(near) == 0 || near[0].ID != "sendMessage" {
		t.Errorf("%v", near)
	}
}

// TestExampleBodiesFitTheirSchemas validates the body that a form starts with.
func TestExampleBodiesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	r, doc := reference(t)
	for path, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
				continue
			}
			text := r.Operation(op.OperationID).ExampleBody()
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Errorf("%s: %v in %s", path, err, text)
			} else if err := op.RequestBody.Value.Content["application/json"].Schema.Value.VisitJSON(value,
				openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s: %s: %v", path, text, err)
			}
		}
	}
}
