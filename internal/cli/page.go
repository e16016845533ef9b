package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-server/parley/client"
)

// addPageFlags adds the flags of a command that lists the server's data in pages.
func (c *command) addPageFlags(cmd *cobra.Command, limit *int, cursor *string) {
	remoteFlags(cmd)
	cmd.Flags().IntVar(limit, "limit", 20, "how many, 1 to 100")
	cmd.Flags().StringVar(cursor, "cursor", "", "continue where a list ended: its next_cursor")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		return checkLimit(cmd, *limit, 100)
	}
}

// checkLimit rejects a --limit out of its range.
func checkLimit(cmd *cobra.Command, limit, most int) error {
	if limit < 1 || limit > most {
		return usageError(cmd, fmt.Sprintf("--limit cannot be %d.", limit), fmt.Sprintf("It takes a whole number from 1 to %d.", most))
	}
	return nil
}

// printPage prints a page as a table, or as JSON. empty is the text for an empty page.
func printPage[T any](c *command, cmd *cobra.Command, page client.Page[T], empty string, head []string, row func(T) []string) error {
	if c.json {
		return printJSON(c.Stdout, page.Raw)
	}
	if page.HasMore {
		defer fmt.Fprintf(c.Stderr, "There are more: %s --cursor %s\n", commandLineAgain(cmd), plainLine(page.NextCursor))
	}
	return c.printList(page.Data, len(page.Data), empty, head, func(i int) []string { return row(page.Data[i]) })
}

// commandLineAgain returns the command line without the cursor.
func commandLineAgain(cmd *cobra.Command) string {
	line := cmd.CommandPath()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "cursor" {
			return
		}
		value := escapeControls(f.Value.String())
		if strings.ContainsAny(value, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
			value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
		line += " --" + f.Name + " " + value
	})
	return line
}
