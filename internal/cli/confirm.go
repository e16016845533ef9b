package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// yesFlag adds --yes to a command whose effect cannot be undone.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}

// requireConsent asks for consent, unless --yes was given. Without it, requireConsent reports what
// was not done.
func (c *command) requireConsent(yes bool, question, undone string) error {
	if yes || c.askConsent(question) {
		return nil
	}
	return &problem{Exit: exitUsage, Code: "NOT_CONFIRMED", What: undone, Why: "It was not confirmed.", Do: "Answer yes, or use --yes."}
}

// askConsent asks on stderr and reads one line. Without a terminal it returns false.
func (c *command) askConsent(question string) bool {
	if c.Stdin == nil {
		return false
	}
	fmt.Fprintf(c.Stderr, "%s [y/N] ", question)
	var answer []byte
	var b [1]byte
	for len(answer) < 10 {
		if n, err := c.Stdin.Read(b[:]); n == 0 || err != nil && err != io.EOF || b[0] == '\n' {
			break
		}
		answer = append(answer, b[0])
	}
	if b[0] != '\n' || !isTerminal(c.Stdin) { // otherwise the terminal has begun a line
		fmt.Fprintln(c.Stderr)
	}
	switch string(answer) {
	case "y", "Y", "yes", "Yes", "YES":
		return true
	}
	return false
}
