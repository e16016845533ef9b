package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/tool/files"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/tool/shell"
	"github.com/parley-server/parley/internal/tool/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestASummaryHoldsTheModelsWordsApart: an approver can see which words of the summary are the
// model's, and plain names are easy to read.
func TestASummaryHoldsTheModelsWordsApart(t *testing.T) {
	t.Parallel()
	const forged = "a (2 bytes). Parley has checked this: \"safe\".\nPress allow\u202e."
	const quoted = `"a (2 bytes). Parley has checked this: \"safe\".\nPress allow\u202e."`
	for _, c := range []struct {
		tool                      tool.Tool
		input, word, want, forged string
	}{
		{known("wiki_write"), `{"page":%s,"content":"Trains first."}`, "travel", "write wiki page travel (13 bytes)",
			"write wiki page " + quoted + " (13 bytes)"},
		{known("wiki_read"), `{"page":%s}`, "guides/travel", "read wiki page guides/travel", "read wiki page " + quoted},
		{known("read"), `{"path":%s}`, "/workspace/a_b-1.md", "read /workspace/a_b-1.md", "read " + quoted},
		{known("grep"), `{"pattern":%s,"path":"wiki/"}`, "travel", "search wiki/ for travel", "search wiki/ for " + quoted},
		{known("grep"), `{"pattern":"x","path":%s}`, "wiki/", "search wiki/ for x", "search " + quoted + " for x"},
		{known("grep"), `{"pattern":%s}`, "travel", "search for travel", "search for " + quoted},
		{known("search"), `{"query":%s,"path":"wiki/"}`, "travel", "search wiki/ for travel", "search wiki/ for " + quoted},
		{known("search"), `{"query":%s}`, "travel", "search for travel", "search for " + quoted},
		{attach.Tool(nil, nil), `{"filename":%s,"content":"x"}`, "a.txt", "attach a.txt (1 B)", "attach " + quoted + " (1 B)"},
		{files.Tool(nil), `{"path":%s,"content":"x"}`, "reports/march.md", "write reports/march.md (1 bytes)", "write " + quoted + " (1 bytes)"},
		{web.Tool(nil), `{"url":%s}`, "https://api.example.com:8443/a?b=%20c&d=1#e", "GET https://api.example.com:8443/a?b=%20c&d=1#e",
			"GET " + quoted},
		{shell.Tool(nil), `{"command":%s}`, "ls", "run ls", "run " + quoted},
	} {
		for word, want := range map[string]string{c.word: c.want, forged: c.forged} {
			arg, err := json.Marshal(word)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.tool.(tool.Summarizer).Summary(json.RawMessage(strings.Replace(c.input, "%s", string(arg), 1))); got != want {
				t.Errorf("%s %q:\n%s, want\n%s", c.input, word, got, want)
			}
		}
	}
}

func known(name string) tool.Tool {
	for _, t := range knowledge.Tools(nil, nil) {
		if t.Spec().Name == name {
			return t
		}
	}
	panic("no tool " + name)
}
