package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// nothing is for commands without arguments.
var nothing = exactly()

// exactly takes these arguments, and says by name what is missing or too much.
func exactly(names ...string) cobra.PositionalArgs { return between(len(names), names...) }

// between takes at least the first n of these arguments.
func between(n int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usage(cmd, strings.Join(names[len(args):n], " and ")+plural(n-len(args), " is", " are")+" missing.", "The command line is: "+cmd.UseLine()+".")
		case len(args) > len(names) && len(names) == 0:
			return usage(cmd, fmt.Sprintf("%q is too much.", args[0]), cmd.CommandPath()+" takes no arguments.")
		case len(args) > len(names):
			return usage(cmd, fmt.Sprintf("%q is too much.", args[len(names)]), cmd.CommandPath()+" takes "+strings.Join(names, " and ")+" only.")
		}
		return nil
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// invalidValue is how pflag refuses a value.
var invalidValue = regexp.MustCompile(`(?s)^invalid argument "(.*)" for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)

// flagRefusal says in words what pflag has against a command line; "" is something
// else.
func flagRefusal(cmd *cobra.Command, err error) (what, why string) {
	m := invalidValue.FindStringSubmatch(err.Error())
	if m == nil {
		if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: "); ok {
			return "A value is missing.", "The flag " + strings.TrimSpace(name) + " needs one."
		}
		return "", ""
	}
	takes := "another value"
	if f := cmd.Flags().Lookup(strings.TrimPrefix(m[2], "--")); f != nil {
		switch f.Value.Type() {
		case "int":
			takes = "a whole number"
		case "duration":
			takes = "a time such as 500ms, 30s or 10m"
		case "bool":
			takes = "true or false"
		}
	}
	if strings.Contains(m[3], strconv.ErrRange.Error()) || errors.Is(err, strconv.ErrRange) {
		takes = "a smaller number"
	}
	return fmt.Sprintf("%s cannot be %q.", m[2], m[1]), "It takes " + takes + "."
}
