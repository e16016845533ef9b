package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/docs"
)

// TestDocsPrintsPages lists, prints and searches the pages, without a server and a database.
func TestDocsPrintsPages(t *testing.T) {
	t.Parallel()
	sh := shell{t: t, dir: t.TempDir()}
	var list struct {
		Data []struct{ Topic, Title, Summary, Group string }
	}
	if err := json.Unmarshal([]byte(sh.must("docs", "--json")), &list); err != nil || len(list.Data) < 30 {
		t.Fatalf("%d pages, %v", len(list.Data), err)
	}
	table := sh.must("docs")
	for _, p := range list.Data {
		if !strings.Contains(table, "\n"+p.Topic+" ") || p.Title == "" || p.Summary == "" || p.Group == "" {
			t.Errorf("the list has %+v", p)
		}
	}
	want, err := docs.Files.ReadFile("guides/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"approvals", "guides/approvals", "guides/approvals.md"} {
		if out := sh.must("docs", topic); out != string(want) {
			t.Errorf("parley docs %s prints %.80q", topic, out)
		}
	}
	if out := sh.must("docs", "--search", "erase a session"); !strings.Contains(out, "retention") {
		t.Errorf("the search prints %s", out)
	}
	for line, want := range map[string]string{"docs aprovals": "Did you mean parley docs guides/approvals?",
		"docs approvals --search x": "not both", "docs a b": `"b" is too much`} {
		if _, errs, code := sh.run(strings.Fields(line)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("parley %s: exit code %d, %s", line, code, errs)
		}
	}
}
