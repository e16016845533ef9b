package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// newCommand returns the command line of parley-bench.
func newCommand() *cobra.Command {
	var opt Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "parley-bench [WORKLOAD]…",
		Short: "measure a Parley server",
		Example: `  parley-bench                                      three rounds of the usual workloads, about twelve minutes
  parley-bench sandbox turn --json                  every case of two workloads, as JSON
  parley-bench --full --database postgres://…       everything, on a PostgreSQL of your own`,
		Long: `Measures the whole service against the same server without a database (raw) and
against the simplest design on PostgreSQL (naive): one INSERT for each delta, a
trigger that notifies, streams that query again. The command interleaves the rounds
and prints their medians, ratios first: ratios hold on other machines too.

Every run checks that each stream receives exactly its deltas, in order, once, also
across a connection that is cut. A failed check ends in exit code 1; a missed target
does not.

Without --database the command starts a private PostgreSQL in a temporary directory,
with the durable settings of serve --dev. With it, the command creates databases named
parley_bench_… there and drops them.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Quick && opt.Full {
				return fmt.Errorf("--quick and --full exclude each other; %w", errUsage)
			}
			opt.Workloads = append(opt.Workloads, args...)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			opt.Progress = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
			report, err := Run(ctx, opt)
			if report == nil {
				return err
			}
			write := report.WriteTable
			if asJSON {
				write = report.WriteJSON
			}
			err = errors.Join(err, write(cmd.OutOrStdout()))
			if n := len(report.Failures); err == nil && n > 0 {
				err = fmt.Errorf("%d runs failed", n)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&opt.Workloads, "workload", nil,
		"append, gap, flat, short, burst, offered, paced, replay, turn, tool, idle, sandbox; every case of it")
	f.StringSliceVar(&opt.Modes, "mode", nil, "raw, naive, service, service-remote, river-default; bare, walled, direct, proxied")
	f.IntVar(&opt.Rounds, "rounds", 0, "how often each mode runs (default 3, with --quick 1)")
	f.BoolVar(&opt.Quick, "quick", false, "small and once")
	f.BoolVar(&opt.Full, "full", false, "every case, with 10,000 busy and 10,000 idle streams")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.StringVar(&opt.Database, "database", "", "PostgreSQL to use, as a role that may create databases")
	f.StringVar(&opt.Peers, "peers", "", "directory with drivers of other servers to measure beside, such as bench/peers")
	f.StringVar(&opt.Profiles, "profiles", "", "directory for processor profiles of the servers")
	return cmd
}
