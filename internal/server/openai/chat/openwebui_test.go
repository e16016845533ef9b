package chat

import (
	"testing"

	"github.com/parley-server/parley/internal/server/openai/words"
)

// TestDocumentsBeforeAWord checks that a message with documents is read from its own text.
func TestDocumentsBeforeAWord(t *testing.T) {
	t.Parallel()
	const own = "allow 7QK2MX"
	if got := words.Parse(typedText(contextPrompt + contextEnd + own)); got.IsNone() || got != words.Parse(own) {
		t.Errorf("%+v", got)
	}
	if got := typedText("see " + contextEnd + own); got != "see "+contextEnd+own {
		t.Errorf("%s", got)
	}
}
