package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

// readOwnTools parses the value of --tools: JSON, or a file with it.
func (c *command) readOwnTools(cmd *cobra.Command, value string) (tools []client.CallerTool, err error) {
	if value == "" {
		return nil, nil
	}
	raw := []byte(value)
	if name, ok := strings.CutPrefix(value, "@"); ok {
		if raw, err = os.ReadFile(c.resolvePath(name)); err != nil {
			return nil, unreadableError(err)
		}
	}
	if !utf8.Valid(raw) {
		return nil, notText(cmd, "The value of --tools")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&tools); err != nil || dec.More() {
		return nil, usageError(cmd, "The value of --tools is not a list of tools.",
			`It is JSON such as [{"name":"get_time","description":"The time."}], or @FILE.`)
	}
	return tools, nil
}

// answerCalls handles the calls of the caller's tools that a turn waits for: it asks the user at the
// terminal for each result. errLater ends the stream: no user can answer.
func (v *viewer) answerCalls(ctx context.Context, f client.Frame) error {
	var q client.ToolRequired
	if err := json.Unmarshal(f.Data, &q); err != nil {
		return fmt.Errorf("read the calls: %w", err)
	}
	if v.reading || v.replayed {
		if a, err := v.remote.Approval(ctx, q.ApprovalID); err == nil && a.Status != "pending" {
			return nil
		}
	}
	switch {
	case v.approving.rule == approveWait || v.reading:
		v.printLine("Waiting for another client. " + callsHint(q))
		return nil
	case v.approving.noInput || !v.c.isAttended():
		v.calls = &q
		return errLater
	}
	v.mu.Lock()
	v.breakLine()
	v.first = -1 // from now on it would include the user's time
	v.mu.Unlock()
	results := make([]client.ToolOutput, 0, len(q.Calls))
	if err := v.c.typist.dropInput(ctx); err != nil {
		return noAnswer(err)
	}
	for _, call := range q.Calls {
		fmt.Fprintf(v.c.Stderr, "Result of %s (text or JSON; empty: it failed): ", plainLine(call.Tool+" "+string(call.Input)))
		line, err := v.c.typist.readLine(ctx)
		if err != nil {
			fmt.Fprintln(v.c.Stderr)
			v.calls = &q
			return noAnswer(err)
		}
		results = append(results, typedResult(call.ToolUseID, line))
	}
	_, err := v.remote.PostToolResults(ctx, v.session, results)
	if e, ok := errors.AsType[*client.Error](err); ok && (e.Status == http.StatusConflict || e.Status == http.StatusGone) {
		v.printLine(plainLine(e.Error())) // the stream reports what became of the turn
		return nil
	}
	return err
}

// typedResult returns the result that a user has typed.
func typedResult(call, line string) client.ToolOutput {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return client.ToolOutput{ToolUseID: call, Error: "The user gave no result."}
	case json.Valid([]byte(line)):
		return client.ToolOutput{ToolUseID: call, Output: json.RawMessage(line)}
	}
	return client.ToolOutput{ToolUseID: call, Output: line}
}

// callsHint explains how a program posts results.
func callsHint(q client.ToolRequired) string {
	at := q.ReplyURL
	if strings.HasPrefix(at, "/") {
		at = "$PARLEY_URL" + at
	}
	type result struct {
		ID     string `json:"tool_use_id"`
		Output string `json:"output"`
	}
	body := struct {
		Results []result `json:"results"`
	}{}
	for _, call := range q.Calls {
		body.Results = append(body.Results, result{call.ToolUseID, "…"})
	}
	raw, _ := json.Marshal(body) // these values cannot fail
	return fmt.Sprintf("Post the results by %s:\n  ", q.ExpiresAt.Local().Format("15:04:05 MST")) +
		plainLine(fmt.Sprintf(`curl "%s" -H "Authorization: Bearer $PARLEY_API_KEY" -H "Content-Type: application/json" -d '%s'`, at, raw))
}
