package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/permission"
)

// The values of --approve.
const (
	approveAsk   = "ask"   // ask at the terminal; without one the question stays open
	approveNever = "never" // deny approvals at once
	approveWait  = "wait"  // wait for an answer from elsewhere
)

// approving configures how the questions of a turn are answered.
type approving struct {
	given    []string
	rule     string // one of the above
	patterns []permission.Pattern
	noInput  bool // ask no question at this terminal
}

const approveHelp = `--approve decides how an approval is answered: ask (at this terminal; without a terminal the command
prints the request as JSON and exits with code 3, and the approval stays pending), never (deny at
once), wait (until another client decides, at most ten minutes), or pattern:PATTERN (allow once the
calls that the pattern covers; see docs/guides/permissions.md). Repeat the flag to combine patterns
with one of the others. The command asks for secrets at a terminal, and else leaves them pending.
`

func (a *approving) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.given, "approve", nil, "ask, never, wait or pattern:PATTERN, see above (default ask)")
	cmd.Flags().BoolVar(&a.noInput, "no-input", false, "ask nothing, even at a terminal, and read no stdin beside a message")
}

// parseFlags parses the flags.
func (a *approving) parseFlags(cmd *cobra.Command) error {
	for _, word := range a.given {
		pattern, isPattern := strings.CutPrefix(word, "pattern:")
		switch {
		case isPattern:
			p, err := permission.Parse(pattern)
			if err != nil {
				return err
			}
			a.patterns = append(a.patterns, p)
		case !slices.Contains([]string{approveAsk, approveNever, approveWait}, word):
			return usageError(cmd, fmt.Sprintf("--approve cannot be %q.", word), "It takes ask, never, wait or pattern:PATTERN.")
		case a.rule != "" && a.rule != word:
			return usageError(cmd, fmt.Sprintf("--approve is %s and %s.", a.rule, word), "Only patterns can be combined with another value.")
		default:
			a.rule = word
		}
	}
	return nil
}

// coversAll reports whether the patterns cover every operation of a question.
func (a *approving) coversAll(ask event.InputRequired) bool {
	for _, op := range ask.Operations {
		if !slices.ContainsFunc(a.patterns, func(p permission.Pattern) bool { return p.Matches(op.Tool, op.Input) }) {
			return false
		}
	}
	return len(ask.Operations) > 0
}
