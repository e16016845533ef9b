package cli

import "github.com/spf13/cobra"

// movedBench returns the hidden command that names the program parley-bench.
func movedBench() *cobra.Command {
	return &cobra.Command{
		Use:                "bench",
		Short:              "use the program parley-bench",
		Example:            "  bin/parley-bench --quick",
		Annotations:        map[string]string{ownOutput: "it prints an error"},
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return &problem{Exit: exitUsage, Code: "USAGE", What: "The benchmark is a separate program, parley-bench.",
				Do: "Build and run it with make bench, or with go run ./cmd/parley-bench."}
		},
	}
}
