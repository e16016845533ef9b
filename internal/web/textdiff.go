package web

import (
	"unicode/utf8"

	"github.com/parley-server/parley/internal/store/agent"
)

// textDiff is a difference of two texts as a table shows it.
type textDiff struct {
	Rows           []diffRow
	Added, Removed int // lines
}

// diffRow is a line of a difference, or the title of a part.
type diffRow struct {
	Title         string
	Op            string // del, ins or ""
	Before, After int    // line numbers; 0: none
	Text          string
	Word, Rest    string // Text is followed by the words that changed, and by what follows them
}

// diffContext is the number of lines around a change.
const diffContext = 3

// diffDefinitions returns the settings that differ, then the lines of the instructions.
func diffDefinitions(before, after agent.Definition) (d textDiff) {
	same := before
	same.Instructions = after.Instructions
	d.add("Settings", agent.Diff(same, after), false)
	d.add("Instructions", agent.Diff(agent.Definition{Instructions: before.Instructions},
		agent.Definition{Instructions: after.Instructions}), true)
	return d
}

// add appends a part without the lines that are far from a change.
func (d *textDiff) add(title string, lines []agent.Line, numbered bool) {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line.Op != ' ' {
			for j := max(0, i-diffContext); j < min(len(lines), i+diffContext+1); j++ {
				near[j] = true
			}
		}
	}
	b, a := 0, 0
	for i, line := range lines {
		row := diffRow{Text: line.Text}
		switch line.Op {
		case '-':
			b++
			d.Removed++
			row.Op, row.Before = "del", b
		case '+':
			a++
			d.Added++
			row.Op, row.After = "ins", a
		default:
			b, a = b+1, a+1
			row.Before, row.After = b, a
		}
		if !numbered {
			row.Before, row.After = 0, 0
		}
		if near[i] && (i == 0 || !near[i-1]) {
			d.Rows = append(d.Rows, diffRow{Title: title})
		}
		if near[i] {
			d.Rows = append(d.Rows, row)
		}
	}
	d.markWords()
}

// markWords splits a removed line and the added line after it where they begin to differ. A line
// that replaces none differs as a whole.
func (d *textDiff) markWords() {
	for i := range d.Rows {
		row := &d.Rows[i]
		if row.Op != "del" || i+1 == len(d.Rows) || d.Rows[i+1].Op != "ins" {
			continue
		}
		if i > 0 && d.Rows[i-1].Op == "del" || i+2 < len(d.Rows) && d.Rows[i+2].Op == "ins" || row.Word != "" {
			continue
		}
		next := &d.Rows[i+1]
		head, tail := commonEnds(row.Text, next.Text)
		row.Text, row.Word, row.Rest = row.Text[:head], row.Text[head:len(row.Text)-tail], row.Text[len(row.Text)-tail:]
		next.Text, next.Word, next.Rest = next.Text[:head], next.Text[head:len(next.Text)-tail], next.Text[len(next.Text)-tail:]
	}
}

// commonEnds returns how many bytes two lines have in common at their begin and their end, at
// borders of characters.
func commonEnds(a, b string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for head > 0 && (head < len(a) && !utf8.RuneStart(a[head]) || head < len(b) && !utf8.RuneStart(b[head])) {
		head--
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (!utf8.RuneStart(a[len(a)-tail]) || !utf8.RuneStart(b[len(b)-tail])) {
		tail--
	}
	return head, tail
}
