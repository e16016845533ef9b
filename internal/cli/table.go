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

// ownOutput marks a command without --json; the value states why.
const ownOutput = "parley_own_output"

// jsonFlag adds --json to every command that prints something.
func (c *command) jsonFlag(cmd *cobra.Command) {
	if !cmd.HasSubCommands() && cmd.Annotations[ownOutput] == "" && cmd.Flags().Lookup("output") == nil && !cmd.IsAdditionalHelpTopicCommand() {
		cmd.Flags().BoolVar(&c.json, "json", false, "print JSON, errors included")
	}
}

// object is a result in --json.
type object = map[string]any

// data prints a result as JSON.
func (c *command) data(v any) error { return printJSON(c.Stdout, object{"data": v}) }

// note prints a sentence on stderr; with --json the result contains it.
func (c *command) note(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.Stderr, format+"\n", args...)
	}
}

// done reports a change: its result as JSON, or a sentence on stderr.
func (c *command) done(result any, format string, args ...any) error {
	if c.json {
		return c.data(result)
	}
	c.note(format, args...)
	return nil
}

// named is done for a change whose result has a text that scripts need: stdout has only this text.
func (c *command) named(text string, result any, format string, args ...any) error {
	if !c.json {
		fmt.Fprintln(c.Stdout, text)
	}
	return c.done(result, format, args...)
}

// once is named for a text that is shown only now.
func (c *command) once(text string, result any, format string, args ...any) error {
	return c.named(text, result, format+"\nIt is not shown again: store it now.", args...)
}

// printText prints a text as it is, and to a terminal without its control characters.
func (c *command) printText(text string, result any) error {
	if c.json {
		return c.data(result)
	}
	if terminal(c.Stdout) {
		text = visible(text)
	}
	_, err := io.WriteString(c.Stdout, text)
	return err
}

// list prints rows as a table, or items as JSON. It prints empty on stderr if there are none.
func (c *command) list(items any, n int, empty string, head []string, row func(i int) []string) error {
	switch {
	case c.json && n == 0:
		return c.data([]any{})
	case c.json:
		return c.data(items)
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
