package builtin

import (
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/search"
)

// fewRows is the maximum number of items or rows of a list that is shown whole.
const fewRows = 3

// focusOf reduces a list or a table to the rows that the question is about, beyond the words of the
// heading. Any other text stays whole.
func focusOf(s search.Section, question string) string {
	head, rows := splitItems(s)
	terms := search.Terms(question)
	headed := search.Terms(s.Heading + " " + s.Title)
	terms = slices.DeleteFunc(terms, func(t string) bool { return slices.Contains(headed, t) })
	if len(rows) <= fewRows || len(terms) == 0 {
		return s.Text
	}
	var best []string
	most := 1
	for _, row := range rows {
		said := search.Terms(row)
		n := 0
		for _, t := range terms {
			if slices.Contains(said, t) {
				n++
			}
		}
		if n > most {
			best, most = nil, n
		}
		if n == most {
			best = append(best, row)
		}
	}
	if len(best) == 0 {
		return s.Text
	}
	return strings.Join(append(head, best...), "\n")
}

// splitItems splits a list, a table or a file of comma-separated values: the lines that explain the
// others, and one string for each item or row. Other texts, and numbered lists, which depend on
// their order, have no rows.
func splitItems(s search.Section) (head, rows []string) {
	lines := strings.Split(s.Text, "\n")
	if strings.HasSuffix(s.Doc, ".csv") {
		return lines[:1], lines[1:]
	}
	table := false
	for _, line := range lines {
		bullet := strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ")
		switch {
		case strings.HasPrefix(line, "|") && !table:
			head, table = append(head, line), true // the names of the columns
		case strings.HasPrefix(line, "|--"), strings.HasPrefix(line, "| --"):
			head = append(head, line)
		case table && strings.HasPrefix(line, "|"), bullet:
			rows = append(rows, line)
		case strings.HasPrefix(line, " ") && len(rows) > 0:
			rows[len(rows)-1] += "\n" + line // an item of several lines
		case len(rows) > 0 && strings.TrimSpace(line) != "":
			return nil, nil // not only a list
		case len(rows) == 0:
			head = append(head, line)
		}
	}
	return head, rows
}
