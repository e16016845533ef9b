// Parley-bench measures the service against the same server without a database and against the
// simplest design on PostgreSQL. It reports ratios of alternating runs on one machine, and checks
// in every run that each stream received exactly its deltas, in order, once.
//
// It never decides whether a result is fast enough: it prints targets with the figures, and only a
// failed check is a failure.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(runCommand(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// errUsage marks an invalid command line.
var errUsage = errors.New("see parley-bench --help")

// runCommand runs a command line and returns its exit code: 1 for a failed run or check, 2 for an
// invalid command line.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; %w", err, errUsage) })
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "parley-bench:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}
