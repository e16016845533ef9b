// Package shell contains the tool bash. Other packages decide permissions and sandbox the command;
// this package describes both to the model and formats the output as a result.
package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

// The limits of a command's running time.
const (
	DefaultTime = 30 * time.Second
	MaxTime     = 600 * time.Second
)

const (
	maxCommand = 128 << 10 // bytes
	maxInput   = 1 << 20   // bytes of a call's input: JSON may write a byte as six
	maxShown   = 100       // characters of a command in a summary
)

// Box runs commands in a sandbox.
type Box interface {
	// Bash runs a command in the session's folder. Its output is written to out, with marks in
	// place of secrets; they are passed to the method WriteMark if out has one (redact.Marker).
	// killed is the reason why the command did not end by itself, or "". An error for the model is
	// a tool.Refusal.
	Bash(ctx context.Context, call tool.Call, command string, limit time.Duration, out io.Writer) (exit int, killed string, err error)
	// Unavailable returns the reason why this server cannot run commands, or "".
	Unavailable() string
}

// Tool returns the tool over box.
func Tool(box Box) tool.Tool { return bash{box} }

type bash struct{ box Box }

type input struct {
	Command string `json:"command" jsonschema:"command for bash, of one or several lines"`
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"time after which it is killed; default: 30"`
}

var inputSchema = tool.SchemaOf[input](tool.Between("timeout_seconds", 1, MaxTime.Seconds()))

// Spec implements tool.Tool.
func (t bash) Spec() tool.Spec {
	return tool.Spec{
		Name: "bash",
		Description: "Run a command with bash in this session's folder, /workspace, which keeps its files. Every call is a new shell. " +
			"Files that the user sent are in /workspace/attachments, which is read-only. " +
			"The network is HTTP and HTTPS to the hosts that the workspace allows; others are refused, or not found by name. " +
			"Give files to the user with attach_file.",
		Schema:      inputSchema,
		Unavailable: t.box.Unavailable(),
	}
}

// Summary implements tool.Summarizer.
func (bash) Summary(raw json.RawMessage) string {
	in, wrong := parseInput(raw)
	if wrong != "" {
		return "run a command"
	}
	return "run " + render.Argument(strings.TrimSpace(in.Command), maxShown)
}

// Call implements tool.Tool.
func (t bash) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	in, wrong := parseInput(call.Input)
	if wrong != "" {
		return tool.Reject(wrong), nil
	}
	limit := DefaultTime
	if in.Seconds > 0 {
		limit = time.Duration(in.Seconds) * time.Second
	}
	var out ends
	exit, killed, err := t.box.Bash(ctx, call, in.Command, limit, &out)
	if err != nil {
		return tool.Result{}, err
	}
	text := out.String()
	switch {
	case killed != "":
		text = appendLine(text, "["+killed+"]")
	case exit != 0:
		text = appendLine(text, fmt.Sprintf("[exit status %d]", exit))
	case text == "":
		text = "[no output]"
	}
	return tool.Result{OK: exit == 0 && killed == "", Output: text}, nil
}

// parseInput parses a call's input. wrong is a sentence for the model.
func parseInput(raw json.RawMessage) (in input, wrong string) {
	if len(raw) > maxInput {
		return in, "The command is too long: write a script into a file, with write."
	}
	if wrong := tool.Decode(raw, &in); wrong != "" {
		return in, wrong
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return in, `"command" is required: what bash is to run.`
	case strings.ContainsRune(in.Command, 0):
		return in, "A command cannot hold a NUL character."
	case len(in.Command) > maxCommand:
		return in, "The command is too long: write a script into a file, with write."
	case in.Seconds < 0 || in.Seconds > int(MaxTime/time.Second):
		return in, `"timeout_seconds" is a whole number from 1 to 600.`
	}
	return in, ""
}

// appendLine adds a line to a text.
func appendLine(text, add string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + add
}
