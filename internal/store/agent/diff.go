package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Line is a line of a difference.
type Line struct {
	Op   byte // ' ': in both, '-': only before, '+': only after
	Text string
}

// Diff returns the difference of two definitions: a line for each setting that differs, then the
// lines of the instructions, unless they are equal.
func Diff(before, after Definition) []Line {
	var lines []Line
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"model", before.Model, after.Model}, {"effort", before.Effort, after.Effort},
		{"tools", before.Tools, after.Tools}, {"rules", before.Rules, after.Rules},
		{"max_response_seconds", before.Limits.MaxResponseSeconds, after.Limits.MaxResponseSeconds},
		{"max_turns", before.Limits.MaxTurns, after.Limits.MaxTurns},
		{"history_tokens", before.Limits.HistoryTokens, after.Limits.HistoryTokens},
		{"max_cost_usd", before.Limits.MaxCostUSD, after.Limits.MaxCostUSD},
	} {
		if b, a := encode(f.before), encode(f.after); b != a {
			lines = append(lines, Line{'-', f.name + ": " + b}, Line{'+', f.name + ": " + a})
		}
	}
	if before.Instructions != after.Instructions {
		lines = append(lines, diffText(splitLines(before.Instructions), splitLines(after.Instructions))...)
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

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// maxCells bounds the table of diffText: larger texts are one replacement.
const maxCells = 4 << 20

// diffText returns the lines of two texts, with the fewest changes.
func diffText(before, after []string) (lines []Line) {
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		lines = append(lines, Line{' ', before[0]})
		before, after = before[1:], after[1:]
	}
	same := 0
	for same < min(len(before), len(after)) && before[len(before)-1-same] == after[len(after)-1-same] {
		same++
	}
	tail := before[len(before)-same:]
	lines = append(lines, diffMiddle(before[:len(before)-same], after[:len(after)-same])...)
	for _, text := range tail {
		lines = append(lines, Line{' ', text})
	}
	return lines
}

// diffMiddle compares texts that begin and end differently. common[i][j] is the length of the
// longest common subsequence of before[i:] and after[j:].
func diffMiddle(before, after []string) (lines []Line) {
	n, m := len(before), len(after)
	common := make([][]int32, n+1)
	if (n+1)*(m+1) <= maxCells {
		for i := range common {
			common[i] = make([]int32, m+1)
		}
		for i := n - 1; i >= 0; i-- {
			for j := m - 1; j >= 0; j-- {
				if before[i] == after[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
	}
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case common[0] != nil && i < n && j < m && before[i] == after[j]:
			lines = append(lines, Line{' ', before[i]})
			i, j = i+1, j+1
		case i < n && (j == m || common[0] == nil || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, Line{'-', before[i]})
			i++
		default:
			lines = append(lines, Line{'+', after[j]})
			j++
		}
	}
	return lines
}
