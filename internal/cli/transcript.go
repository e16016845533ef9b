package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) sessionsShow() *cobra.Command {
	var asOf int64
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "show the messages of a session",
		Example: `  parley sessions show 0192f0aa-0000-7000-8000-000000000001
  parley sessions show 0192f0aa-0000-7000-8000-000000000001 --as-of 1042
  parley sessions show 0192f0aa-0000-7000-8000-000000000001 --json | jq -r .data[].content`,
		Args: exactArguments("SESSION"),
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) (err error) {
		var messages []client.HistoryMessage
		if cmd.Flags().Changed("as-of") {
			messages, err = remote.AllMessagesAsOf(ctx, args[0], asOf)
		} else {
			messages, err = remote.AllMessages(ctx, args[0])
		}
		if err != nil {
			return err
		}
		if len(messages) == 0 && cmd.Flags().Changed("as-of") && !c.json {
			fmt.Fprintf(c.Stderr, "The session had no messages at event %d.\n", asOf)
			return nil
		}
		return c.showMessages(messages)
	})
	remoteFlags(cmd)
	cmd.Flags().Int64Var(&asOf, "as-of", 0, "the id of an event; shows the messages as they were after it")
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkLeast(cmd, 0, "as-of") }
	return cmd
}

func (c *command) showMessages(messages []client.HistoryMessage) error {
	if c.json {
		return c.printData(rawMessages(messages))
	}
	for i, m := range messages {
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		if err := c.showMessage(m); err != nil {
			return err
		}
	}
	if len(messages) == 0 {
		fmt.Fprintln(c.Stderr, "The session has no messages.")
	}
	return nil
}

// showMessage prints a message for a user.
func (c *command) showMessage(m client.HistoryMessage) error {
	bold := func(s string) string { return s }
	if isTerminal(c.Stdout) && c.hasColours() {
		bold = func(s string) string { return "\x1b[1m" + s + "\x1b[0m" }
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s%s\n", bold(speakerName(m)), formatDay(&m.CreatedAt), originNote(m))
	for _, t := range m.ToolCalls {
		mark := "→"
		if t.OK != nil && !*t.OK {
			mark = "✗"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, callLine(t.Tool, t.Summary))
	}
	if text := spokenText(m); text != "" {
		b.WriteString(escapeControls(text) + "\n")
	}
	for _, f := range m.Attachments {
		fmt.Fprintf(&b, "+ %s\n", plainLine(fmt.Sprintf("%s (%s, %s bytes)", f.Filename, f.MIME, formatThousands(f.Size))))
	}
	if end := endingNote(m); end != "" {
		fmt.Fprintln(&b, end)
	}
	if u := m.Usage; u != nil {
		fmt.Fprintln(&b, usageLine(u.InputTokens, u.OutputTokens, u.CostUSD, 0, u.Model))
	}
	_, err := io.WriteString(c.Stdout, b.String())
	return err
}

// originNote names the session that a fork has a message from.
func originNote(m client.HistoryMessage) string {
	if m.InheritedFrom == "" {
		return ""
	}
	return "  from " + m.InheritedFrom
}

func speakerName(m client.HistoryMessage) string {
	if m.Role == "user" {
		return "User"
	}
	return "Agent"
}

// spokenText returns the text of a message: for a skill its label, for a structured answer the
// JSON.
func spokenText(m client.HistoryMessage) string {
	switch {
	case m.Label != "":
		return m.Label
	case m.StructuredResult != nil:
		var b strings.Builder
		_ = printJSON(&b, m.StructuredResult) // it was parsed from JSON
		return strings.TrimSpace(b.String())
	case m.Content != nil:
		return strings.TrimRight(*m.Content, "\n")
	}
	return ""
}

// endingNote describes why a message is not complete.
func endingNote(m client.HistoryMessage) string {
	switch {
	case m.Erased:
		return "(erased)"
	case m.Expired:
		return "(in progress; its text is past its retention)"
	case m.Error != nil:
		if m.Status == *m.Error { // canceled
			return "(" + m.Status + ")"
		}
		return "(" + m.Status + ": " + plainLine(*m.Error) + ")"
	case m.Status == "in_progress":
		return "(in progress)"
	}
	return ""
}

// rawMessages returns messages in their original JSON.
func rawMessages(messages []client.HistoryMessage) []any {
	list := make([]any, len(messages))
	for i, m := range messages {
		list[i] = m.Raw
	}
	return list
}
