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
	approveNever = "never" // approvals are denied at once
	approveWait  = "wait"  // for an answer from elsewhere
)

// approving decides who answers the questions of a turn.
type approving struct {
	given    []string
	rule     string // one of the above
	patterns []permission.Pattern
	noInput  bool // ask nothing at this terminal
}

const approveHelp = `When the agent asks for an approval, --approve says who answers: ask (you, here; without a
terminal the request is printed as JSON and left open, with exit code 3), never (it is denied),
wait (somebody else does, within ten minutes), pattern:PATTERN (what the pattern covers is
allowed, this once; see docs/guides/permissions.md). It may be repeated: patterns come first. Secrets
are asked for at a terminal, or left open.
`

func (a *approving) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.given, "approve", nil, "ask, never, wait or pattern:PATTERN, see above (default ask)")
	cmd.Flags().BoolVar(&a.noInput, "no-input", false, "ask nobody here, even at a terminal, and read no stdin beside a message")
}

// read understands the flags.
func (a *approving) read(cmd *cobra.Command) error {
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
			return usage(cmd, fmt.Sprintf("--approve cannot be %q.", word), "It takes ask, never, wait or pattern:PATTERN.")
		case a.rule != "" && a.rule != word:
			return usage(cmd, fmt.Sprintf("--approve is %s and %s.", a.rule, word), "Only patterns can stand beside another.")
		default:
			a.rule = word
		}
	}
	return nil
}

// covered reports whether patterns stand for everything that is asked.
func (a *approving) covered(ask event.InputRequired) bool {
	for _, op := range ask.Operations {
		if !slices.ContainsFunc(a.patterns, func(p permission.Pattern) bool { return p.Matches(op.Tool, op.Input) }) {
			return false
		}
	}
	return len(ask.Operations) > 0
}
