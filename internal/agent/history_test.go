package agent

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHistoryFitsItsBudget draws histories and budgets: the newest messages are complete, every
// omitted message is counted, and the result fits the budget.
func TestHistoryFitsItsBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var history []Past
		for i := range rapid.IntRange(0, 40).Draw(t, "messages") {
			words := rapid.IntRange(0, 200).Draw(t, "words")
			history = append(history, Past{Role: []string{"user", "assistant"}[i%2], Text: fmt.Sprintf("#%d ", i) + strings.Repeat("word ", words)})
		}
		budget := rapid.IntRange(0, 3000).Draw(t, "budget")
		recent, condensed := fitHistory(history, budget)

		used := estimateTokens(condensed)
		for i, p := range recent {
			used += estimateTokens(p.Text)
			if p.Text != history[len(history)-len(recent)+i].Text {
				t.Fatalf("message %d of the recent ones is not the history's", i)
			}
		}
		if len(recent) < len(history) && condensed == "" {
			t.Fatalf("%d messages are missing and not counted", len(history)-len(recent))
		}
		if used > budget+40 {
			t.Fatalf("%d tokens for a budget of %d", used, budget)
		}
		older := history[:len(history)-len(recent)]
		told := strings.Count(condensed, "#")
		if left := len(older) - told; left > 0 && !strings.Contains(condensed, fmt.Sprintf("(%d earlier messages are left out)", left)) {
			t.Fatalf("%d of %d old messages are condensed, and the rest is not counted: %s", told, len(older), condensed)
		}
	})
}
