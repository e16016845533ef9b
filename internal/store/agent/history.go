package agent

import "math"

// MaxHistoryTokens is the largest number of history_tokens.
const MaxHistoryTokens = 10_000_000

// wholeHistory is stored for history_tokens without a number. It is larger than any window, so the
// agent, which takes it as a number, leaves out no turn.
const wholeHistory = math.MaxInt32

// StoredHistory returns history_tokens as it is stored.
func StoredHistory(tokens *int) int32 {
	if tokens == nil {
		return wholeHistory
	}
	return int32(*tokens)
}

// ParseHistory returns history_tokens from its stored value.
func ParseHistory(stored int32) *int {
	if stored == wholeHistory {
		return nil
	}
	return new(int(stored))
}
