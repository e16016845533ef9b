package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

// sending is one run of `parley send`.
type sending struct {
	c         *command
	remote    *client.Client
	message   client.Message
	inputs    inputFlags
	options   optionFlags
	approving approving
	output    string
	quiet     bool
	verbose   bool
}

var outputs = []string{"text", "json", "stream-json"}

func (c *command) sendCommand() *cobra.Command {
	s := sending{c: c}
	cmd := &cobra.Command{
		Use:   "send MESSAGE…",
		Short: "send a message and print the answer",
		Example: `  parley send "What can you do?"
  git diff | parley send --caller alice --approve never "Review this change"
  parley send --skill monthly_report --input month=2026-10 --output json | jq -r .output`,
		Long: `Prints the answer to stdout as it arrives, and tools, questions, tokens and reconnects to stderr.
Piped text comes before the message, unless there is an argument and --no-input; in a loop that
reads its own input, add </dev/null. The command resumes a broken stream. The first Ctrl-C cancels
the turn, the second leaves it running. With --schema, stdout carries only the answer as JSON.

` + approveHelp + `
` + inputHelp + `
PARLEY_URL, PARLEY_WORKSPACE and PARLEY_API_KEY name the server, the workspace and the key. Without
them the command uses parley serve --dev in this directory.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.message.Skill != "" && len(args) > 0 {
				return usageError(cmd, "Specify a message or --skill, not both.", "")
			}
			if s.message.Skill == "" {
				if s.inputs.isGiven() {
					return usageError(cmd, "Inputs need a skill.", "--input and --input-json need --skill.")
				}
				var err error
				if s.message.Command, err = s.messageText(cmd, args); err != nil {
					return err
				}
			}
			return s.sendMessage(cmd)
		},
	}
	cmd.Flags().StringVar(&s.message.Skill, "skill", "", "run this skill instead of a message")
	s.addFlags(cmd)
	return cmd
}

// addFlags adds the flags of every command that sends.
func (s *sending) addFlags(cmd *cobra.Command) {
	remoteFlags(cmd)
	s.inputs.addFlags(cmd)
	s.options.addFlags(cmd)
	s.approving.addFlags(cmd)
	s.c.actorFlag(cmd)
	f := cmd.Flags()
	f.StringVarP(&s.message.SessionID, "session", "s", "", "continue this session, by its id")
	f.StringVarP(&s.message.CallerID, "caller", "c", "", "continue or start the session of this caller id")
	f.StringVar(&s.message.User, "user", "", "the end user who sends the message")
	f.StringVarP(&s.output, "output", "o", "text", "text, json (the whole answer) or stream-json (one frame a line)")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "print only errors and questions on stderr")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "show what tools return, and the session's id")
	cmd.MarkFlagsMutuallyExclusive("quiet", "verbose")
}

// sendMessage sends the message and shows the answer.
func (s *sending) sendMessage(cmd *cobra.Command) error {
	if !slices.Contains(outputs, s.output) {
		return usageError(cmd, fmt.Sprintf("Unknown output %q.", s.output), "--output takes "+strings.Join(outputs, ", ")+".")
	}
	s.c.json = s.output == "json"
	err := s.approving.parseFlags(cmd)
	if err == nil {
		err = s.options.readOptions(s.c, cmd, &s.message)
	}
	if err == nil {
		s.message.Input, err = s.inputs.readInput(s.c, cmd)
	}
	if err == nil {
		s.remote, err = s.c.dialServer(cmd, s.onRetry)
	}
	if err != nil {
		return err
	}
	defer s.remote.Close()
	s.message.IdempotencyKey = rand.Text()
	switch {
	case s.message.Callback != nil && s.output != "stream-json":
		return s.submitMessage(cmd.Context())
	case s.output == "json":
		return s.awaitAnswer(cmd.Context())
	}
	return s.newViewer().watchFrames(cmd.Context(), func(ctx context.Context) iter.Seq2[client.Frame, error] {
		return s.remote.Send(ctx, s.message)
	})
}

func (s *sending) newViewer() *viewer {
	v := s.c.newViewer(s.remote, s.output)
	v.quiet, v.verbose, v.approving, v.result = s.quiet, s.verbose, s.approving, s.message.ResponseSchema != nil
	return v
}

func (s *sending) onRetry(r client.Retry) { s.c.reportRetry(r, s.quiet) }

func (s *sending) printNote(text string) {
	if !s.quiet {
		fmt.Fprintln(s.c.Stderr, text)
	}
}

// reportRetry reports on one line that a stream broke.
func (c *command) reportRetry(r client.Retry, quiet bool) {
	if !quiet {
		why := errorSentence(r.Err)
		if e, ok := errors.AsType[*client.Error](r.Err); ok { // the advice is for a caller that does not repeat by itself
			why = strings.Replace(e.Message, " "+tryAgain, "", 1)
		}
		fmt.Fprintf(c.Stderr, "parley: %s Trying again in %s (%d of %d).\n", plainLine(why),
			r.Wait.Round(100*time.Millisecond), r.Try, r.Of)
	}
}

// exitOf returns the exit code of a turn that ended with an error code.
func exitOf(code string, interrupted bool) int {
	switch code {
	case "":
		return exitOK
	case "canceled":
		if interrupted {
			return exitInterrupted
		}
		return exitCanceled
	case "timed_out":
		return exitTimedOut
	case "input_required", "tool_required":
		return exitInputRequired
	}
	return exitFailed
}
