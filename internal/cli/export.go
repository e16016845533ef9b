package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
)

var formats = []string{"md", "jsonl", "json"}

func (c *command) sessionsExport() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "export a session as Markdown or JSON",
		Example: `  parley sessions export 0192f0aa-0000-7000-8000-000000000001 > session.md
  parley sessions export 0192f0aa-0000-7000-8000-000000000001 --format json > session.json
  parley sessions export 0192f0aa-0000-7000-8000-000000000001 --format jsonl | jq -r .event`,
		Long: `Prints a session. md has the messages, for a reader. json is one object with messages and events.
jsonl has a message or an event on each line, in the order they happened: an event is
{"event", "id", "data"} as in a stream, a message {"message": …}. While a turn is in progress,
jsonl and json wait for its end.`,
		Annotations: map[string]string{ownOutput: "--format json"},
		Args:        exactArguments("SESSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats, format) {
				return usageError(cmd, fmt.Sprintf("Unknown format %q.", format), "--format takes "+strings.Join(formats, ", ")+".")
			}
			return c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
				return c.exportSession(ctx, remote, args[0], format)
			})(cmd, args)
		},
	}
	remoteFlags(cmd)
	cmd.Flags().StringVar(&format, "format", "md", "md, jsonl or json")
	return cmd
}

func (c *command) exportSession(ctx context.Context, remote *client.Client, session, format string) error {
	if format == "md" {
		messages, err := remote.AllMessages(ctx, session)
		if err != nil {
			return err
		}
		return writeMarkdown(c.Stdout, session, messages)
	}
	events := []client.Frame{}
	for f, err := range remote.Follow(ctx, session, "0") {
		if err != nil {
			return err
		}
		if e, ok := turnErrorOf(f); ok && e.Code == string(event.SessionGone) {
			return &problem{Exit: exitFailed, Code: e.Code, What: "No events to export.", Why: e.Message,
				Do: "--format md exports what the session has."}
		}
		if f.Event != client.KindOpen { // an open of this connection, not an event of the session
			events = append(events, f)
		}
	}
	messages, err := remote.AllMessages(ctx, session) // after the events: they are complete now
	if err != nil {
		return err
	}
	if format == "json" {
		return printJSON(c.Stdout, struct {
			SessionID string         `json:"session_id"`
			Messages  []any          `json:"messages"`
			Events    []client.Frame `json:"events"`
		}{session, rawMessages(messages), events})
	}
	return writeLines(c.Stdout, messages, events)
}

// turnErrorOf returns the body of an error frame.
func turnErrorOf(f client.Frame) (client.TurnError, bool) {
	body, err := f.Body()
	e, ok := body.(client.TurnError)
	return e, ok && err == nil
}

// writeLines writes messages and events in their order: the user's message before the events of its
// turn, the agent's after them.
func writeLines(w io.Writer, messages []client.HistoryMessage, events []client.Frame) error {
	type entry struct {
		at   int64
		line any
	}
	var all []entry
	for _, f := range events {
		seq, err := strconv.ParseInt(f.ID, 10, 64)
		if err != nil {
			return fmt.Errorf("read the id of a frame: %w", err)
		}
		all = append(all, entry{seq, f})
	}
	for _, m := range messages {
		at := m.LastSeq
		if m.Role == "user" {
			at = m.FirstSeq
		}
		all = append(all, entry{at, map[string]any{"message": m.Raw}})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(a.at - b.at) })
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range all {
		if err := enc.Encode(e.line); err != nil {
			return err
		}
	}
	return nil
}

// writeMarkdown writes a session as a page. The user's text is quoted, so that its headings do not
// become the page's. Control characters are escaped: a page is also read at a terminal.
func writeMarkdown(w io.Writer, session string, messages []client.HistoryMessage) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Session %s\n", session)
	for _, m := range messages {
		fmt.Fprintf(&b, "\n## %s, %s\n", speakerName(m), formatDay(&m.CreatedAt))
		for i, t := range m.ToolCalls {
			failed := ""
			if t.OK != nil && !*t.OK {
				failed = " (failed)"
			}
			fmt.Fprintf(&b, "%s- `%s` %s%s\n", strings.Repeat("\n", max(0, 1-i)), t.Tool,
				strings.Join(strings.Fields(callSummary(t.Tool, t.Summary)), " "), failed)
		}
		switch text := spokenText(m); {
		case text == "":
		case m.Role == "user":
			b.WriteString("\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n")
		case m.StructuredResult != nil:
			b.WriteString("\n```json\n" + text + "\n```\n")
		default:
			b.WriteString("\n" + text + "\n")
		}
		for i, f := range m.Attachments {
			fmt.Fprintf(&b, "%s- %s (%s, %s bytes)\n", strings.Repeat("\n", max(0, 1-i)), f.Filename, f.MIME, formatThousands(f.Size))
		}
		if end := endingNote(m); end != "" {
			b.WriteString("\n*" + end + "*\n")
		}
	}
	_, err := io.WriteString(w, escapeControls(b.String()))
	return err
}
