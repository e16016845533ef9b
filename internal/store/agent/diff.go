package agent

import (
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/text"
)

// Line is a line of a difference.
type Line = text.DiffLine

// Diff returns the difference of two definitions: a line for each setting that differs, then the
// lines of the instructions, unless they are equal.
func Diff(before, after Definition) []Line {
	var lines []Line
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"model", before.Model, after.Model}, {"effort", before.Effort, after.Effort},
		{"fallback_models", before.Fallbacks, after.Fallbacks},
		{"tools", before.Tools, after.Tools}, {"rules", before.Rules, after.Rules},
		{"max_response_seconds", before.Limits.MaxResponseSeconds, after.Limits.MaxResponseSeconds},
		{"max_turns", before.Limits.MaxTurns, after.Limits.MaxTurns},
		{"history_tokens", before.Limits.HistoryTokens, after.Limits.HistoryTokens},
		{"max_cost_usd", before.Limits.MaxCostUSD, after.Limits.MaxCostUSD},
	} {
		if b, a := encode(f.before), encode(f.after); b != a {
			lines = append(lines, Line{Op: '-', Text: f.name + ": " + b}, Line{Op: '+', Text: f.name + ": " + a})
		}
	}
	if before.Instructions != after.Instructions {
		lines = append(lines, text.Diff(before.Instructions, after.Instructions)...)
	}
	return lines
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // maps and pointers of plain values always marshal
		return fmt.Sprint(v)
	}
	return string(raw)
}
