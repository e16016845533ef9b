// With-postgres runs a command with TEST_DATABASE_URL set to the tests' private
// server, which it keeps alive for as long as the command runs:
//
//	go run ./internal/dbtest/with-postgres go test ./...
//
// A TEST_DATABASE_URL that is set already is left alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/parley-server/parley/internal/dbtest"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: with-postgres [--] command [argument …]")
		os.Exit(2)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-postgres:", err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if os.Getenv(dbtest.Variable) == "" {
		server, err := dbtest.Shared(ctx)
		if err != nil {
			return 1, err
		}
		defer server.Stop(context.WithoutCancel(ctx))
		cmd.Env = append(cmd.Env, dbtest.Variable+"="+server.DSN(""))
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
