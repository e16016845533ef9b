package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/client"
)

// sending is one run of `parley send`.
type sending struct {
	c       *command
	remote  *client.Client
	message client.Message
	inputs  inputFlags
	output  string
	quiet   bool
	verbose bool
}

var outputs = []string{"text", "json", "stream-json"}

func (c *command) send() *cobra.Command {
	s := sending{c: c}
	cmd := &cobra.Command{
		Use:   "send MESSAGE…",
		Short: "send one message to the agent and print its answer",
		Example: `  parley send "What can you do?"
  git diff | parley send --caller alice "Review this change"
  parley send --skill monthly_report --input month=2026-10 --output json | jq -r .output`,
		Long: `Prints the answer to stdout as it is written, and everything else (tools, tokens,
reconnects) to stderr. What is piped in comes before the message. A stream that
breaks is resumed. Ctrl-C once cancels the turn, twice leaves it running.

` + inputHelp + `
The server, the workspace and the key are those of PARLEY_URL, PARLEY_WORKSPACE and
PARLEY_API_KEY, or else those of parley serve --dev in this directory.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.message.Skill != "" && len(args) > 0 {
				return usage(cmd, "A message and a skill are one too many.", "Both are given.")
			}
			if s.message.Skill == "" {
				if s.inputs.given() {
					return usage(cmd, "There is no skill that takes the inputs.", "--input and --input-json need --skill.")
				}
				var err error
				if s.message.Command, err = c.messageText(cmd, args); err != nil {
					return err
				}
			}
			return s.run(cmd)
		},
	}
	cmd.Flags().StringVar(&s.message.Skill, "skill", "", "run this skill instead of a message")
	s.flags(cmd)
	return cmd
}

// flags are those of every command that sends.
func (s *sending) flags(cmd *cobra.Command) {
	remoteFlags(cmd)
	s.inputs.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&s.message.SessionID, "session", "s", "", "go on with this session, by its id")
	f.StringVarP(&s.message.CallerID, "caller", "c", "", "go on with the session of this caller id, or begin it")
	f.StringVarP(&s.output, "output", "o", "text", "text, json (the whole answer) or stream-json (one frame a line)")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "nothing on stderr but errors")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "show what tools return, and the session's id")
	cmd.MarkFlagsMutuallyExclusive("quiet", "verbose")
}

// run sends the message and shows the answer.
func (s *sending) run(cmd *cobra.Command) error {
	if !slices.Contains(outputs, s.output) {
		return usage(cmd, fmt.Sprintf("There is no output %q.", s.output), "--output takes "+strings.Join(outputs, ", ")+".")
	}
	s.c.json = s.output == "json"
	var err error
	if s.message.Input, err = s.inputs.read(s.c, cmd); err != nil {
		return err
	}
	if s.remote, err = s.c.dial(cmd, s.retrying); err != nil {
		return err
	}
	defer s.remote.Close()
	s.message.IdempotencyKey = rand.Text()
	if s.output == "json" {
		return s.block(cmd.Context())
	}
	return s.stream(cmd.Context())
}

// messageText is what is piped in, then the arguments.
func (c *command) messageText(cmd *cobra.Command, args []string) (string, error) {
	parts := []string{}
	if piped(c.Stdin) {
		text, err := io.ReadAll(io.LimitReader(c.Stdin, 2<<20)) // the server takes less, and says so
		if err != nil {
			return "", fmt.Errorf("read stdin: %w", err)
		}
		if s := strings.TrimRight(string(text), "\r\n"); s != "" {
			parts = append(parts, s)
		}
	}
	if s := strings.Join(args, " "); strings.TrimSpace(s) != "" {
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return "", usage(cmd, "There is no message.", "No argument is given and nothing is piped in.")
	}
	return strings.Join(parts, "\n\n"), nil
}

// stream shows an answer as it is written.
func (s *sending) stream(ctx context.Context) error {
	show := s.c.viewer(s.output, s.quiet, s.verbose)
	return show.watch(ctx, s.remote, func(ctx context.Context) iter.Seq2[client.Frame, error] { return s.remote.Send(ctx, s.message) })
}

// block waits for the whole answer. A caller id of our own, where none is given, is
// what makes the session findable while there is no answer yet.
func (s *sending) block(ctx context.Context) error {
	if s.message.SessionID == "" && s.message.CallerID == "" {
		s.message.CallerID = "cli-" + strings.ToLower(rand.Text())
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stop := s.c.onInterrupt(func(n int) {
		if n == 0 {
			s.note("Cancelling; Ctrl-C again leaves the turn running.")
			if err := s.cancel(ctx); err != nil {
				s.note("It could not be cancelled: " + err.Error())
			}
			return
		}
		leave(errLeft)
	})
	answer, err := s.remote.Ask(ctx, s.message)
	interrupted := stop()
	if err != nil {
		if interrupted > 1 {
			s.note("The turn goes on without you.")
			return exitError(exitInterrupted)
		}
		return err
	}
	if _, err := fmt.Fprintln(s.c.Stdout, strings.TrimRight(string(answer.Raw), "\n")); err != nil {
		return err
	}
	if answer.Error == nil {
		return nil
	}
	return exitError(exitOf(*answer.Error, interrupted > 0))
}

// cancel ends the turn of a session that may not have answered yet.
func (s *sending) cancel(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	session := s.message.SessionID
	if session == "" {
		page, err := s.remote.Sessions(ctx, client.SessionQuery{CallerID: s.message.CallerID, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Data) == 0 {
			return fmt.Errorf("the session is not there yet")
		}
		session = page.Data[0].SessionID
	}
	_, err := s.remote.Cancel(ctx, session)
	return err
}

func (s *sending) retrying(r client.Retry) { s.c.tellRetry(r, s.quiet) }

func (s *sending) note(text string) {
	if !s.quiet {
		fmt.Fprintln(s.c.Stderr, text)
	}
}

// tellRetry says on one line that a stream broke.
func (c *command) tellRetry(r client.Retry, quiet bool) {
	if !quiet {
		fmt.Fprintf(c.Stderr, "parley: %s Trying again in %s (%d of %d).\n", plainLine(sentence(r.Err)), r.Wait.Round(100*time.Millisecond), r.Try, r.Of)
	}
}

// exitOf is the exit code of a turn that ended with an error code.
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
	case "input_required":
		return exitInputRequired
	}
	return exitFailed
}
