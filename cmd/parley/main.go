// Command parley is the server, its administration and its client in one binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-server/parley/internal/cli"
)

func main() {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley: the current directory cannot be read:", err)
		os.Exit(1)
	}
	interrupts := make(chan os.Signal, 4)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Run(context.Background(), cli.Host{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir,
		Interrupts: interrupts, Exit: os.Exit,
	}, os.Args[1:]))
}
