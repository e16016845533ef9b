package tool_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/tool/files"
	"github.com/parley-server/parley/internal/tool/shell"
	"github.com/parley-server/parley/internal/tool/web"
)

// ran is a sandbox that records the commands it receives.
type ran []string

func (r *ran) Bash(_ context.Context, _ tool.Call, command string, _ time.Duration, _ io.Writer) (int, string, error) {
	*r = append(*r, command)
	return 0, "", nil
}

func (*ran) Unavailable() string { return "" }

// TestACommandHasOneName checks that the command that an approval shows is the command that runs.
func TestACommandHasOneName(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`{"command":"echo SAFE","COMMAND":"echo EVIL"}`,
		`{"command":"echo SAFE","command":"echo EVIL"}`,
		`{"command":"echo SAFE","\u0063ommand":"echo EVIL"}`,
		`{"Command":"echo EVIL"}`,
		`{"command":"echo SAFE","timeout_seconds":1,"Timeout_Seconds":600}`,
	} {
		var box ran
		res, err := shell.Tool(&box).Call(t.Context(), tool.Call{Input: json.RawMessage(input)})
		if err != nil || res.OK || len(box) > 0 {
			t.Errorf("%s runs %q: %+v, %v", input, box, res, err)
		}
	}
	var box ran
	if res, err := shell.Tool(&box).Call(t.Context(),
		tool.Call{Input: json.RawMessage(`{"command":"echo SAFE","timeout_seconds":null}`)}); err != nil || !res.OK || len(box) != 1 ||
		box[0] != "echo SAFE" {
		t.Errorf("%q: %+v, %v", box, res, err)
	}
}

// TestEveryToolMatchesNamesExactly checks that every tool matches the names of its input exactly,
// and names the invalid member.
func TestEveryToolMatchesNamesExactly(t *testing.T) {
	t.Parallel()
	for input, tl := range map[string]tool.Tool{
		`{"page":"a","content":"b","Page":"c"}`:                  known("wiki_write"),
		`{"page":"a","Version":true}`:                            known("wiki_read"),
		`{"path":"a","PATH":"b"}`:                                known("read"),
		`{"pattern":"a","Path":"b"}`:                             known("grep"),
		`{"query":"a","Path":"b"}`:                               known("search"),
		`{"filename":"a","content":"b","Content":"c"}`:           attach.Tool(nil, nil),
		`{"path":"a","content":"b","Path":"c"}`:                  files.Tool(nil),
		`{"url":"https://a.example/","URL":"https://b.example"}`: web.Tool(nil),
	} {
		res, err := tl.Call(t.Context(), tool.Call{Input: json.RawMessage(input)})
		if err != nil || res.OK || !strings.Contains(res.Output, "Names are matched exactly") {
			t.Errorf("%s %s: %+v, %v", tl.Spec().Name, input, res, err)
		}
	}
}
