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
	if !cmd.HasSubCommands() && cmd.Annotations[ownOutput] == "" && cmd.Flags().Lookup("output") == nil &&
		!cmd.IsAdditionalHelpTopicCommand() {
		cmd.Flags().BoolVar(&c.json, "json", false, "print JSON, errors included")
	}
}

// object is a result in --json.
type object = map[string]any

// printData prints a result as JSON.
func (c *command) printData(v any) error { return printJSON(c.Stdout, object{"data": v}) }

// printNote prints a sentence on stderr; with --json the result contains it.
func (c *command) printNote(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.Stderr, format+"\n", args...)
	}
}

// printDone reports a change: its result as JSON, or a sentence on stderr.
func (c *command) printDone(result any, format string, args ...any) error {
	if c.json {
		return c.printData(result)
	}
	c.printNote(format, args...)
	return nil
}

// printNamed is printDone for a change whose result has a text that scripts need: stdout has only
// this text.
func (c *command) printNamed(text string, result any, format string, args ...any) error {
	if !c.json {
		fmt.Fprintln(c.Stdout, text)
	}
	return c.printDone(result, format, args...)
}

// printOnce is printNamed for a text that is shown only now.
func (c *command) printOnce(text string, result any, format string, args ...any) error {
	return c.printNamed(text, result, format+"\nIt is not shown again: store it now.", args...)
}

// printText prints a text as it is, and to a terminal without its control characters.
func (c *command) printText(text string, result any) error {
	if c.json {
		return c.printData(result)
	}
	if isTerminal(c.Stdout) {
		text = escapeControls(text)
	}
	_, err := io.WriteString(c.Stdout, text)
	return err
}

// printList prints rows as a table, or items as JSON. It prints empty on stderr if there are none.
func (c *command) printList(items any, n int, empty string, head []string, row func(i int) []string) error {
	switch {
	case c.json && n == 0:
		return c.printData([]any{})
	case c.json:
		return c.printData(items)
	case n == 0:
		fmt.Fprintln(c.Stderr, empty)
		return nil
	}
	rows := [][]string{head}
	for i := range n {
		rows = append(rows, row(i))
	}
	return writeTable(c.Stdout, rows)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeTable aligns columns by characters.
func writeTable(w io.Writer, rows [][]string) error {
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

// formatDay formats a time in the local zone, with the zone; nil is never.
func formatDay(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04 MST")
}

// orEmpty returns a text, or "" without one.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
