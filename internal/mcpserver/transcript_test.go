package mcpserver

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/transcript"
)

// TestTranscripts tells every conversation as the progress of a call, to a reader who is given
// all that there is to tell.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Check(t, []string{"mcp"}, func(t *testing.T, c transcript.Conversation) []transcript.Section {
		var out strings.Builder
		p := &progress{notify: func(message string) error {
			out.WriteString(message + "\n")
			return nil
		}}
		p.begin(transcript.Session)
		for i := range c.Rows {
			p.see(&c.Rows[i].Event)
		}
		p.tell("")
		return []transcript.Section{{Name: "mcp progress", Text: out.String()}}
	})
}
