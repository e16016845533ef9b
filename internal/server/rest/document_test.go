package rest_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/testing/apicheck"
)

func document(t *testing.T, s *service) *apicheck.Document {
	return s.client.Transport.(*apicheck.Transport).Doc
}

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

// TestDocumentNamesEveryProtocol compares the operations with x-served-by with the paths and
// methods that the protocols serve.
func TestDocumentNamesEveryProtocol(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	served := make(map[string]bool)
	all := make(server.Routes)
	for _, routes := range s.protocols(t, s.Server(t, nil)) {
		maps.Copy(all, routes)
	}
	for path := range all {
		alias := strings.HasPrefix(path, "/v1") || path == "/a2a/" || slices.Contains([]string{"/openai", "/openai/", "/openai/v1",
			"/openai/v1/"}, path)
		if !alias { // other names of the same operations, and paths without one
			served[strings.ReplaceAll(path, "...}", "}")] = true
		}
	}
	var want, got []string
	fill := regexp.MustCompile(`\{\w+\}`)
	for path := range served {
		r := s.get(t, call{method: "OPTIONS", path: fill.ReplaceAllString(path, "demo"), key: "-"})
		for method := range strings.SplitSeq(r.header.Get("Allow"), ", ") {
			if method != "OPTIONS" && method != "HEAD" {
				got = append(got, method+" "+path)
			}
		}
	}
	for path, item := range document(t, s).Paths.Map() {
		for method, op := range item.Operations() {
			if op.Extensions["x-served-by"] != nil {
				want = append(want, method+" "+path)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the protocols differ from the document (-document +served):\n%s", diff)
	}
}

func TestDocumentNeedsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.say(t, "@text 1 delta").rest() // all parts are running
	s.link.cut()
	first := s.get(t, call{path: "/api/v1/openapi", key: "-"})
	etag := first.header.Get("ETag")
	if first.status != 200 || !strings.HasPrefix(etag, `"`) || first.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d, ETag %s", first.status, etag)
	}
	for _, match := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
		if r := s.get(t, call{path: "/api/v1/openapi", key: "-", header: []string{"If-None-Match", match}}); r.status != 304 ||
			r.text != "" || r.header.Get("ETag") != etag {
			t.Errorf("If-None-Match %s: %d", match, r.status)
		}
	}
	if r := s.get(t, call{path: "/api/v1/openapi", key: "-", header: []string{"If-None-Match", `"x"`}}); r.status != 200 {
		t.Errorf("another ETag: %d", r.status)
	}
	if r := s.get(t, call{method: "HEAD", path: "/api/v1/openapi", key: "-"}); r.status != 200 || r.text != "" ||
		r.header.Get("ETag") != etag {
		t.Errorf("HEAD: %d", r.status)
	}
}

// TestDocumentedRunningTurns compares the documented limit of turns in progress with that of a new
// workspace.
func TestDocumentedRunningTurns(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	limits, _ := document(t, s).Extensions["x-limits"].(map[string]any)
	if got := limits["workspace_running_turns"]; got != float64(s.Workspace.MaxRunning) {
		t.Errorf("documented as %v, is %d", got, s.Workspace.MaxRunning)
	}
	if got := limits["workspace_storage_bytes"]; got != float64(s.Workspace.StorageQuota) {
		t.Errorf("the storage quota is documented as %v, is %d", got, s.Workspace.StorageQuota)
	}
}

// TestPageNamesEveryStreamCode checks that the page about streams names exactly the documented
// codes.
func TestPageNamesEveryStreamCode(t *testing.T) {
	t.Parallel()
	page, err := docs.Files.ReadFile("reference/streaming.md")
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
	if err := json.Unmarshal([]byte(s.get(t, call{path: "/api/v1/openapi", key: "-"}).text), &doc); err != nil || len(doc.Servers) != 1 ||
		doc.Servers[0].URL != "/" {
		t.Errorf("%+v, %v", doc, err)
	}
}
