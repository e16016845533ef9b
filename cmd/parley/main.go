// Command parley is the server, its administration and its client in one binary.
package main

import (
	"os"

	"github.com/parley-server/parley/internal/cli"
)

func main() { os.Exit(cli.Main()) }
