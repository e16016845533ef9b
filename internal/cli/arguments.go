package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nothing rejects all arguments.
var nothing = exactArguments()

// exactArguments accepts these arguments. Its error names a missing or extra one.
func exactArguments(names ...string) cobra.PositionalArgs {
	return atLeastArguments(len(names), names...)
}

// atLeastArguments requires at least the first n of these arguments.
func atLeastArguments(n int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usageError(cmd, strings.Join(names[len(args):n], " and ")+pluralize(n-len(args), " is", " are")+" missing.",
				"The command line is: "+cmd.UseLine()+".")
		case len(args) > len(names) && len(names) == 0:
			return usageError(cmd, fmt.Sprintf("%q is too much.", args[0]), cmd.CommandPath()+" takes no arguments.")
		case len(args) > len(names):
			return usageError(cmd, fmt.Sprintf("%q is too much.", args[len(names)]), cmd.CommandPath()+" takes "+strings.Join(names,
				" and ")+" only.")
		}
		if i := slices.Index(args, ""); i >= 0 {
			return usageError(cmd, names[i]+" is empty.", "A variable may not be set.")
		}
		return nil
	}
}

const emptyKey = "parley_may_be_empty"

// maybeEmpty marks flags that may be empty.
func maybeEmpty(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.Flags().SetAnnotation(name, emptyKey, []string{"true"})
	}
}

// checkFlagValues rejects a flag with an empty value, which an unset shell variable produces:
// without its value, the command would do something else.
func checkFlagValues(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if empty && f.Annotations[emptyKey] == nil && err == nil {
			err = usageError(cmd, "--"+f.Name+" is empty.", "Give it a value, or leave it out. A variable may not be set.")
		}
	})
	return err
}

func pluralize(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// numberOf describes the values of a flag that takes a number.
func numberOf(f *pflag.Flag, other string) string {
	if strings.Contains(f.Usage, "id of an event") {
		return "the id of an event, such as 1042"
	}
	return other
}

// checkLeast rejects a smaller number of one of these flags. A flag that is not given is not checked.
func checkLeast(cmd *cobra.Command, least int64, names ...string) error {
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		if n, err := strconv.ParseInt(f.Value.String(), 10, 64); f.Changed && err == nil && n < least {
			return usageError(cmd, fmt.Sprintf("--%s cannot be %d.", name, n), "It takes "+numberOf(f, fmt.Sprintf("a whole number from %d",
				least))+".")
		}
	}
	return nil
}

// checkTimeout rejects a --timeout that is not a whole number of seconds up to most.
func checkTimeout(cmd *cobra.Command, timeout, most time.Duration) error {
	if timeout == timeout.Truncate(time.Second) && timeout >= time.Second && timeout <= most {
		return nil
	}
	return usageError(cmd, fmt.Sprintf("--timeout cannot be %s.", timeout), fmt.Sprintf("It takes whole seconds, from 1s to %.0fm.",
		most.Minutes()))
}

// invalidValue matches pflag's error for an invalid value.
var invalidValue = regexp.MustCompile(`(?s)^invalid argument "(.*)" for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)

// flagRefusal describes an error of pflag; what is "" for any other error.
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
		case "int", "int64":
			takes = numberOf(f, "a whole number")
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
