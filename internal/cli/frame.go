package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text/render"
)

// showFrame prints one frame.
func (v *viewer) showFrame(f client.Frame) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.ID != "" {
		v.lastID = f.ID
	}
	if v.output == "stream-json" {
		line, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("write the frame: %w", err)
		}
		if _, err := fmt.Fprintf(v.c.Stdout, "%s\n", line); err != nil {
			return err
		}
	}
	var b struct {
		SessionID string   `json:"session_id"`
		Text      string   `json:"text"`
		Tool      string   `json:"tool"`
		Summary   string   `json:"summary"`
		OK        bool     `json:"ok"`
		Output    string   `json:"output"`
		Truncated bool     `json:"truncated"`
		In        int64    `json:"input_tokens"`
		Out       int64    `json:"output_tokens"`
		Cost      *float64 `json:"cost_usd"`
		Model     string   `json:"model"`
		Resumed   *bool    `json:"resumed"`

		Server     string    `json:"server"`
		ConnectURL string    `json:"connect_url"`
		ExpiresAt  time.Time `json:"expires_at"`

		Calls       []client.PendingCall `json:"calls"`
		Result      json.RawMessage      `json:"result"`
		Attachments []struct {
			client.OutputFile
			FileID string `json:"file_id"`
			Reason string `json:"reason"`
		} `json:"attachments"`
		failure
	}
	if err := json.Unmarshal(f.Data, &b); err != nil {
		return fmt.Errorf("read a frame of the kind %s: %w", plainLine(string(f.Event)), err)
	}
	if f.Event != client.KindOpen {
		defer func() { v.shown++ }()
	}
	switch f.Event {
	case "open":
		v.session = b.SessionID
		if v.verbose {
			v.writeLine("session " + plainLine(b.SessionID))
		}
	case "text":
		return v.printText(b.Text)
	case "tool_use":
		v.writeLine("→ " + callLine(b.Tool, b.Summary))
	case "tool_result":
		if !b.OK {
			v.writeLine("✗ " + plainLine(b.Tool+" failed: "+firstLine(b.Output)))
		} else if v.verbose {
			v.writeLine("← " + plainLine(b.Tool) + "\n" + escapeControls(b.Output))
		} else {
			v.writeLine("← " + plainLine(b.Tool+" "+resultLine(b.Output)))
		}
	case "tool_required":
		for _, call := range b.Calls {
			v.writeLine("? " + plainLine(fmt.Sprintf("%s %s needs a result: %s", call.Tool, call.Input, call.ToolUseID)))
		}
	case client.KindConnectRequired:
		v.writeLine(plainLine(render.Connect(event.ConnectRequired{Server: b.Server, ExpiresAt: b.ExpiresAt}, b.ConnectURL)))
	case "usage":
		v.printUsage(b.In, b.Out, b.Cost, b.Model)
	case "structured":
		return v.printStructured(b.Result)
	case "attachment":
		for _, a := range b.Attachments {
			v.writeLine(plainLine(fmt.Sprintf("+ %s (%s, %s bytes): %s", a.Filename, a.MIME, formatThousands(a.Size), a.DownloadURL)))
		}
	case "attachment_rejected":
		for _, a := range b.Attachments {
			v.writeLine("✗ " + plainLine(fmt.Sprintf("%s was not used: %s", cmp.Or(a.Filename, a.FileID), a.Reason)))
		}
	case "error":
		v.failed = new(b.failure)
	case "done":
		if b.Resumed != nil && !*b.Resumed && v.shown == 0 && v.output != "json" {
			v.writeLine("The session is completed; no events will follow. See all of it again: parley sessions tail " +
				plainLine(v.session) + " --after 0")
		}
	}
	return nil
}

// printText prints a piece of the answer. A terminal receives no control characters from a model; a
// file receives the exact text.
func (v *viewer) printText(s string) error {
	if v.first == 0 {
		v.first = time.Since(v.began)
	}
	if v.output != "text" || v.result || s == "" {
		return nil
	}
	v.inLine = !strings.HasSuffix(s, "\n")
	if v.screen {
		s = escapeControls(s)
	}
	_, err := io.WriteString(v.c.Stdout, s)
	return err
}

// printStructured prints the answer in the requested schema.
func (v *viewer) printStructured(result json.RawMessage) error {
	if v.output != "text" {
		return nil
	}
	v.endLine()
	var b strings.Builder
	if err := printJSON(&b, result); err != nil {
		return fmt.Errorf("print the structured answer: %w", err)
	}
	_, err := io.WriteString(v.c.Stdout, escapeControls(b.String())) // escapes are JSON's own
	return err
}

func (v *viewer) printUsage(in, out int64, cost *float64, model string) {
	v.endLine() // the answer is complete
	v.writeLine(usageLine(in, out, cost, v.first, model))
}

// usageLine returns tokens and cost on a line; first, the time until the first text, may be 0.
func usageLine(in, out int64, cost *float64, first time.Duration, model string) string {
	line := fmt.Sprintf("%s in · %s out", formatThousands(in), formatThousands(out))
	switch {
	case cost != nil && *cost == 0:
		line += " · $0"
	case cost != nil:
		line += fmt.Sprintf(" · $%.4f", *cost)
	}
	if first > 0 {
		line += fmt.Sprintf(" · %.1f s first token", first.Seconds())
	}
	return line + " · " + plainLine(model)
}

// printLine prints a line for callers that do not hold mu.
func (v *viewer) printLine(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writeLine(line)
}

// writeLine writes a line to stderr. On a terminal it first ends the line of the answer.
func (v *viewer) writeLine(line string) {
	if v.quiet {
		return
	}
	v.breakLine()
	fmt.Fprintln(v.c.Stderr, v.dim(line))
}

// breakLine begins a line on stderr. The line of the answer stays open if stdout is not the same
// terminal.
func (v *viewer) breakLine() {
	if v.inLine && v.screen {
		fmt.Fprintln(v.c.Stderr)
		v.inLine = false
	}
}

// endLine ends the answer with a newline.
func (v *viewer) endLine() {
	if v.inLine && v.output == "text" {
		fmt.Fprintln(v.c.Stdout)
		v.inLine = false
	}
}

// callLine describes a tool call.
func callLine(tool, summary string) string {
	return plainLine(strings.TrimSpace(tool + " " + callSummary(tool, summary)))
}

// callSummary returns the summary of a call for use behind the name of the tool, with which many
// summaries begin.
func callSummary(tool, summary string) string {
	return strings.TrimSpace(strings.TrimPrefix(summary+" ", tool+" "))
}

// resultLine returns the beginning of a result, with the number of lines after the first.
func resultLine(output string) string {
	line := shortText(firstLine(output), 100)
	if more := strings.Count(strings.TrimSpace(output), "\n"); more > 0 {
		line += fmt.Sprintf(" (+%d %s)", more, pluralize(more, "line", "lines"))
	}
	return line
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// formatThousands formats 2914 as 2,914.
func formatThousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
