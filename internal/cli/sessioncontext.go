package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) sessionsContext() *cobra.Command {
	var turn, step int
	cmd := &cobra.Command{
		Use:   "context SESSION",
		Short: "show what the model received for a step",
		Example: `  parley sessions context 0192f0aa-0000-7000-8000-000000000001
  parley sessions context 0192f0aa-0000-7000-8000-000000000001 --turn 2 --step 1
  parley sessions context 0192f0aa-0000-7000-8000-000000000001 --json | jq .data.request.system`,
		Long: `Rebuilds the request of a step from the log, and compares its hash with the one that the log
recorded when the request was sent. The exit code is 1 if they differ. Inputs of skills are shown by
name. --json prints the whole request.`,
		Args: exactArguments("SESSION"),
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
		got, err := remote.Context(ctx, args[0], turn, step)
		if err != nil {
			return err
		}
		if c.json {
			err = c.printData(got.Raw)
		} else {
			err = c.showContext(got)
		}
		if err == nil && !got.Matches && got.RecordedSHA256 != "" {
			err = differentRequest(got)
		}
		return err
	})
	remoteFlags(cmd)
	cmd.Flags().IntVar(&turn, "turn", 0, "the number of the turn in the session, from 1; default the newest")
	cmd.Flags().IntVar(&step, "step", 0, "the number of the step in the turn, from 1; default the newest")
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkLeast(cmd, 1, "turn", "step") }
	return cmd
}

// differentRequest reports a request that differs from the one that was sent, and why if that is known.
func differentRequest(got client.SentContext) *problem {
	p := &problem{Exit: exitFailed, Code: "FAILED", What: "The rebuilt request is not the one that was sent.",
		Why: fmt.Sprintf("The log has the hash %s, the rebuilt request %s.", got.RecordedSHA256, got.RebuiltSHA256)}
	if got.HistoryErased {
		p.Why = "The messages of a session that this one was forked from were erased, so the rebuilt request lacks them. " + p.Why
	}
	return p
}

// showContext prints a request for a reader.
func (c *command) showContext(got client.SentContext) error {
	var b strings.Builder
	fmt.Fprintf(&b, "turn %s, step %d, %s, %d input tokens\n", got.TurnID, got.Step, got.Model, got.Usage.InputTokens)
	if got.RequestID != "" {
		fmt.Fprintf(&b, "request of the provider: %s\n", got.RequestID)
	}
	if got.Request.Parameters.Effort != "" {
		fmt.Fprintf(&b, "effort: %s\n", got.Request.Parameters.Effort)
	}
	var tools []string
	for _, t := range got.Request.Tools {
		tools = append(tools, t.Name)
	}
	fmt.Fprintf(&b, "\nsystem\n%s\n\ntools: %s\n", got.Request.System, strings.Join(tools, ", "))
	for _, m := range got.Request.Messages {
		name := m.Role
		if m.CallID != "" {
			name += " " + m.CallID
		}
		fmt.Fprintf(&b, "\n%s\n", name)
		if m.Text != "" {
			fmt.Fprintln(&b, m.Text)
		}
		for _, f := range m.Files {
			switch {
			case f.Text != "":
				fmt.Fprintf(&b, "text of %s, for a model that does not read the file, %d bytes\n%s\n", f.Name, f.Bytes, f.Text)
			case f.Name == "": // models receive images without their names
				fmt.Fprintf(&b, "image, %s, %d bytes\n", f.MIME, f.Bytes)
			default:
				fmt.Fprintf(&b, "file %s, %s, %d bytes\n", f.Name, f.MIME, f.Bytes)
			}
		}
		for _, call := range m.Calls {
			fmt.Fprintf(&b, "→ %s %s\n", call.Tool, call.Input)
		}
	}
	if got.Request.Partial != "" {
		fmt.Fprintf(&b, "\nthe reply so far\n%s\n", got.Request.Partial)
	}
	switch {
	case got.RecordedSHA256 == "":
		c.printNote("The log has no hash of this request: an earlier release sent it.")
	case got.Matches:
		c.printNote("The hash matches the recorded one: %s", got.RebuiltSHA256)
	}
	_, err := io.WriteString(c.Stdout, escapeControls(b.String()))
	return err
}
