package manifest

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/text"
)

// contextLines is the number of equal lines around a difference.
const contextLines = 3

// Diff returns the change as a unified diff.
func (c Change) Diff() string {
	var b strings.Builder
	from, to := c.Title(), c.Title()
	switch c.Action {
	case Create:
		from = "/dev/null"
	case Delete:
		to = "/dev/null"
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	lines := text.Diff(c.Before, c.After)
	before, after := 1, 1 // numbers of the line at i
	for i := 0; i < len(lines); {
		if lines[i].Op == ' ' {
			i, before, after = i+1, before+1, after+1
			continue
		}
		start, end := max(0, i-contextLines), hunkEnd(lines, i)
		writeHunk(&b, lines[start:end], before-(i-start), after-(i-start))
		for ; i < end; i++ {
			if lines[i].Op != '+' {
				before++
			}
			if lines[i].Op != '-' {
				after++
			}
		}
	}
	if c.Action == Update && strings.HasSuffix(c.Before, "\n") != strings.HasSuffix(c.After, "\n") {
		b.WriteString("\\ Only one of them ends with a newline.\n")
	}
	return b.String()
}

// hunkEnd returns the end of the hunk whose first changed line is at i.
func hunkEnd(lines []text.DiffLine, i int) int {
	last := i
	for j := i; j < len(lines) && j-last <= 2*contextLines; j++ {
		if lines[j].Op != ' ' {
			last = j
		}
	}
	return min(len(lines), last+contextLines+1)
}

func writeHunk(b *strings.Builder, lines []text.DiffLine, before, after int) {
	var old, new int
	for _, l := range lines {
		if l.Op != '+' {
			old++
		}
		if l.Op != '-' {
			new++
		}
	}
	if old == 0 {
		before--
	}
	if new == 0 {
		after--
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", before, old, after, new)
	for _, l := range lines {
		fmt.Fprintf(b, "%c%s\n", l.Op, l.Text)
	}
}
