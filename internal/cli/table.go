package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json to a command that lists something.
func (c *command) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON, errors included")
}

// list prints rows as a table, or items as JSON. It prints empty on stderr if there are none.
func (c *command) list(items any, n int, empty string, head []string, row func(i int) []string) error {
	switch {
	case c.json && n == 0:
		return printJSON(c.Stdout, map[string]any{"data": []any{}})
	case c.json:
		return printJSON(c.Stdout, map[string]any{"data": items})
	case n == 0:
		fmt.Fprintln(c.Stderr, empty)
		return nil
	}
	rows := [][]string{head}
	for i := range n {
		rows = append(rows, row(i))
	}
	return table(c.Stdout, rows)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table aligns columns by characters.
func table(w io.Writer, rows [][]string) error {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = plainLine(cell)
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// day formats a time in the local zone, with the zone; nil is never.
func day(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04 MST")
}
