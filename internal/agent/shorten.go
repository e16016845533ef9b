package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

// The parts of a long result, in bytes in the log and in characters in a preview: its beginning, which
// shows the plan, and its end, which shows the error.
const (
	loggedHead  = 48 << 10
	loggedTail  = 16 << 10
	previewHead = 3000
	previewTail = 1000
)

// shortenOutput returns the row of an output, with a preview if it is longer than the model reads. The
// whole output then becomes a file of the session's folder; read_tool_result returns it also without
// one. A file that cannot be written costs the model only the file.
func (r *run) shortenOutput(ctx context.Context, c event.ToolCall, output string) (event.ToolOutput, error) {
	if len(output) <= tool.MaxOutput {
		return event.ToolOutput{ToolUseID: c.ID, Output: output}, nil
	}
	file, refused, err := r.keepOutput(ctx, c, output)
	if err != nil {
		return event.ToolOutput{}, err
	}
	out := event.ToolOutput{ToolUseID: c.ID, Output: limitOutput(output), Size: len(output), File: file}
	if file != "" {
		out.SHA256 = digestOutput(output)
	}
	where := "The whole result is in /workspace/" + file + "."
	if file == "" {
		where = "It is not in a file: " + refused
	}
	out.Preview = fmt.Sprintf("%s\n[…]\n%s\n[This result has %d bytes in %d lines. Its beginning and its end are above. %s]",
		text.Prefix(output, previewHead),
		suffix(output, previewTail), len(output), strings.Count(strings.TrimSuffix(output, "\n"), "\n")+1, where)
	return out, nil
}

// keepOutput writes an output into a file. Only the end of ctx is an error; refused is any other
// reason for a missing file.
func (r *run) keepOutput(ctx context.Context, c event.ToolCall, output string) (file, refused string, err error) {
	if r.KeepResult == nil {
		return "", "this server has no folder for it.", nil
	}
	file, err = r.KeepResult(ctx, r.toolCall(c), output)
	switch refusal, ok := errors.AsType[tool.Refusal](err); {
	case err == nil:
		return file, "", nil
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case ok:
		return "", string(refusal), nil
	}
	r.Log.ErrorContext(ctx, "keep the result of a tool in a file", "tool", c.Tool, "err", err)
	return "", "writing it failed.", nil
}

func digestOutput(output string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(output))) }

// limitOutput limits the part of an output that the log keeps.
func limitOutput(s string) string {
	if len(s) <= loggedHead+loggedTail {
		return s
	}
	return strings.ToValidUTF8(s[:loggedHead], "") + "\n[cut here]\n" + strings.ToValidUTF8(s[len(s)-loggedTail:], "")
}

// suffix returns the last n characters of s.
func suffix(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// isShortened reports whether the model reads a preview of a result of the unit.
func (u unit) isShortened() bool { return len(u.shortened) > 0 }

// nameResults adds to each preview how to read the rest, with the id of the call as the model sees it.
func nameResults(units []unit) []unit {
	for _, u := range units {
		for i := range u.shortened {
			m := &u.messages[i]
			m.Text += fmt.Sprintf("\n[%s with the tool_use_id %q returns it in parts.]", readResult, m.CallID)
		}
	}
	return units
}
