package turns

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/golden"
	"github.com/parley-server/parley/internal/turn"
)

// TestTranscripts encodes every conversation as the progress of a call, for a client that receives
// all of it, and its questions as results, with their texts listed separately.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Check(t, []string{"mcp"}, func(t *testing.T, c golden.Conversation) []golden.Section {
		var out strings.Builder
		p := &progress{notify: func(message string) error {
			out.WriteString(message + "\n")
			return nil
		}}
		p.sendSession(golden.Session)
		for i := range c.Rows {
			p.reportEvent(c.Rows[i].Body)
		}
		p.flushThen("")
		list := []golden.Section{{Name: "mcp progress", Text: out.String()}}
		for _, row := range c.Rows {
			if row.Kind == event.KindInputRequired {
				texts := questionTexts(turn.Outcome{SessionID: golden.Session, InputRequired: row.Data})
				list = append(list, golden.Section{Name: "mcp question", Text: strings.Join(texts, "\n-\n") + "\n"})
			}
		}
		return list
	})
}
