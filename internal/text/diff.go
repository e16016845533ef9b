package text

import "strings"

// DiffLine is a line of a difference.
type DiffLine struct {
	Op   byte // ' ': in both, '-': only before, '+': only after
	Text string
}

// Diff returns the lines of two texts, with the fewest changes.
func Diff(before, after string) []DiffLine { return diffLines(splitLines(before), splitLines(after)) }

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// maxCells bounds the table of diffLines: larger texts are one replacement.
const maxCells = 4 << 20

// diffLines is Diff for the lines of two texts.
func diffLines(before, after []string) (lines []DiffLine) {
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		lines = append(lines, DiffLine{' ', before[0]})
		before, after = before[1:], after[1:]
	}
	same := 0
	for same < min(len(before), len(after)) && before[len(before)-1-same] == after[len(after)-1-same] {
		same++
	}
	tail := before[len(before)-same:]
	lines = append(lines, diffMiddle(before[:len(before)-same], after[:len(after)-same])...)
	for _, text := range tail {
		lines = append(lines, DiffLine{' ', text})
	}
	return lines
}

// diffMiddle compares texts that begin and end differently. common[i][j] is the length of the
// longest common subsequence of before[i:] and after[j:].
func diffMiddle(before, after []string) (lines []DiffLine) {
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
			lines = append(lines, DiffLine{' ', before[i]})
			i, j = i+1, j+1
		case i < n && (j == m || common[0] == nil || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, DiffLine{'-', before[i]})
			i++
		default:
			lines = append(lines, DiffLine{'+', after[j]})
			j++
		}
	}
	return lines
}
