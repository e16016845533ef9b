package turn_test

import (
	"bytes"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool/knowledge"
)

// TestUnconfirmedWriteIsInterrupted loses the response to a tool's write after PostgreSQL has
// committed it. The result must not claim that the write failed.
func TestUnconfirmedWriteIsInterrupted(t *testing.T) {
	t.Parallel()
	const content = "Trains before planes, and ferries before both."
	w := newWorld(t, &modeltest.Script{Replies: []modeltest.Reply{
		{Calls: []modeltest.Call{{ID: "c1", Tool: "wiki_write", Input: `{"page":"travel","content":"` + content + `"}`}}},
		{Text: []string{"Done."}},
	}})
	proxy, dsn := dbtest.Proxy(t, w.dsn)
	w.tools = knowledge.Tools(wiki.New(dbtest.Pool(t, dsn)), nil)
	conn := 0
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		switch {
		case conn == 0 && c.Direction == faultproxy.ToServer && bytes.Contains(c.Data, []byte(content)):
			conn = c.Conn
		case c.Conn == conn && c.Direction == faultproxy.ToClient && bytes.Contains(c.Data, []byte("COMMIT\x00")):
			return faultproxy.ResetAfter(0)
		}
		return faultproxy.Forward
	})
	r := w.replica(t, nil)
	var result event.ToolResult
	for _, ev := range read(t, r, w.start(t, r, "write it")) {
		if body, _ := ev.Body(); ev.Kind == event.KindToolResult {
			result = body.(event.ToolResult)
		}
	}
	if result.OK || result.Output != "interrupted, outcome unknown" {
		t.Errorf("the call ended with %+v", result)
	}
	var stored string
	if err := w.pool.QueryRow(t.Context(), `SELECT content FROM documents`).Scan(&stored); err != nil || stored != content {
		t.Errorf("the page has %q, %v", stored, err)
	}
}
