package httpapi_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
)

func document(t *testing.T, s *service) *apiDocument { return s.client.Transport.(*checked).doc }

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.get(t, call{path: "/api/v1/openapi", key: "-"})
	doc, err := openapi3.NewLoader().LoadFromData([]byte(r.text))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.2.3" {
		t.Errorf("OpenAPI %s of version %s", doc.OpenAPI, doc.Info.Version)
	}
	if !strings.HasPrefix(r.text, `{"openapi":"3.1.0","info":{"title":`) {
		t.Errorf("the order of members is lost: %.60s", r.text)
	}
}

func TestDocumentNeedsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.say(t, "@text 1 delta").rest() // everything is running
	s.link.cut()
	first := s.get(t, call{path: "/api/v1/openapi", key: "-"})
	etag := first.header.Get("ETag")
	if first.status != 200 || !strings.HasPrefix(etag, `"`) || first.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d, ETag %s", first.status, etag)
	}
	for _, match := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
		if r := s.get(t, call{path: "/api/v1/openapi", key: "-", header: []string{"If-None-Match", match}}); r.status != 304 || r.text != "" || r.header.Get("ETag") != etag {
			t.Errorf("If-None-Match %s: %d", match, r.status)
		}
	}
	if r := s.get(t, call{path: "/api/v1/openapi", key: "-", header: []string{"If-None-Match", `"x"`}}); r.status != 200 {
		t.Errorf("another ETag: %d", r.status)
	}
	if r := s.get(t, call{method: "HEAD", path: "/api/v1/openapi", key: "-"}); r.status != 200 || r.text != "" || r.header.Get("ETag") != etag {
		t.Errorf("HEAD: %d", r.status)
	}
}

// Every code is documented under the status it is sent with, the list of codes is
// exactly what the operations use, and each operation knows what can befall it.
func TestDocumentNamesEveryCode(t *testing.T) {
	t.Parallel()
	doc := document(t, start(t, nil))
	used := map[string]bool{"NOT_FOUND": true} // of no operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			want := []string{"405", "406", "500"}
			if op.Extensions["x-scope"] != "none" {
				want = append(want, "401", "403", "404", "503")
				if !apikey.Scope(op.Extensions["x-scope"].(string)).Known() {
					t.Errorf("%s: scope %v", name, op.Extensions["x-scope"])
				}
			} else if op.Security == nil || len(*op.Security) != 0 {
				t.Errorf("%s: public, but asks for a key", name)
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
			t.Errorf("%s is no code", v)
		}
		if !used[v.(string)] {
			t.Errorf("%s is listed, and nothing answers with it", v)
		}
	}
	for code := range used {
		if !slices.Contains(listed, code) {
			t.Errorf("%s is not listed", code)
		}
	}
	for _, v := range doc.Components.Schemas["StreamErrorCode"].Value.Enum {
		if !slices.Contains(event.Codes, event.Code(v.(string))) {
			t.Errorf("%s is no code of an error event", v)
		}
	}
}

// codesOf reads the codes that an error response narrows its envelope to.
func codesOf(t *testing.T, r *openapi3.Response) (codes []string) {
	t.Helper()
	data, err := json.Marshal(r.Content["application/json"].Schema.Value.AllOf[1].Value)
	if err != nil {
		t.Fatal(err)
	}
	var narrow struct {
		Properties struct {
			Error struct {
				Properties struct{ Code struct{ Enum []string } }
			}
		}
	}
	if err := json.Unmarshal(data, &narrow); err != nil || len(narrow.Properties.Error.Properties.Code.Enum) == 0 {
		t.Fatalf("%s: %v", data, err)
	}
	return narrow.Properties.Error.Properties.Code.Enum
}

// What the document says of turns in progress is what a new workspace has.
func TestDocumentedRunningTurns(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	limits, _ := document(t, s).Extensions["x-limits"].(map[string]any)
	if got := limits["workspace_running_turns"]; got != float64(s.workspace.MaxRunning) {
		t.Errorf("documented as %v, is %d", got, s.workspace.MaxRunning)
	}
}

// The page about streams names every code that the document lists, and no other.
func TestPageNamesEveryStreamCode(t *testing.T) {
	t.Parallel()
	page, err := docs.Files.ReadFile("streaming.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| code | recoverable | meaning |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		code := event.Code(strings.TrimPrefix(cells[0], "| "))
		if len(cells) != 3 || strings.HasPrefix(line, "|--") {
			continue
		}
		got = append(got, string(code))
		if says := cells[1] == "yes"; says != code.Recoverable() {
			t.Errorf("%s: recoverable is %v", code, code.Recoverable())
		}
	}
	for _, v := range document(t, start(t, nil)).Components.Schemas["StreamErrorCode"].Value.Enum {
		want = append(want, v.(string))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has %v, the document %v", got, want)
	}
}

func TestServerAddress(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var doc struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal([]byte(s.get(t, call{path: "/api/v1/openapi", key: "-"}).text), &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != "/" {
		t.Errorf("%+v, %v", doc, err)
	}
}
