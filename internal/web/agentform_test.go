package web

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/store/agent"
)

// TestEmptyHistoryIsThatOfTheWindow shows and parses history_tokens with and without a number.
func TestEmptyHistoryIsThatOfTheWindow(t *testing.T) {
	t.Parallel()
	for text, tokens := range map[string]*int{"": nil, "0": new(0), "24000": new(24000)} {
		v := agent.Version{Definition: agent.Defaults()}
		v.Limits.HistoryTokens = tokens
		f := agentForm(agent.Agent{}, v)
		v.Limits.HistoryTokens = new(1)
		d, err := f.definition(v.Definition)
		if got := f.Value("history_tokens"); got != text || err != nil || !cmp.Equal(d.Limits.HistoryTokens, tokens) {
			t.Errorf("the field has %q, want %q; it is parsed as %v, %v", got, text, d.Limits.HistoryTokens, err)
		}
	}
}
