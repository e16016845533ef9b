package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/parley-server/parley/internal/vault"
)

// hiddenInput reads a secret: what is piped in, without the line end, or what
// somebody types, without showing it. It never comes from the command line, where
// others could see it.
func (c *command) hiddenInput(ctx context.Context, prompt string) (vault.Value, error) {
	if f, ok := c.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(c.Stderr, "%s (it is not shown): ", prompt)
		defer fmt.Fprintln(c.Stderr)
		return typed(ctx, int(f.Fd()))
	}
	if !piped(c.Stdin) {
		return vault.Value{}, &problem{Exit: exitUsage, Code: "USAGE", What: "There is no value.", Why: "Nothing is piped in and nobody can be asked.", Do: "Pipe it in: … < file"}
	}
	text, err := io.ReadAll(io.LimitReader(c.Stdin, vault.MaxValue+3)) // the vault refuses less, and says so
	if err != nil {
		return vault.Value{}, fmt.Errorf("read the value: %w", err)
	}
	return vault.NewValue(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))), nil
}

// typed reads a line without echo. Ctrl-C leaves the terminal as it was.
func typed(ctx context.Context, fd int) (vault.Value, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return vault.Value{}, fmt.Errorf("ask for the value: %w", err)
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // it ends with the process when nobody types any more
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		if l.err != nil {
			return vault.Value{}, fmt.Errorf("ask for the value: %w", l.err)
		}
		return vault.NewValue(append([]byte{}, l.text...)), nil // nil would be no value
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return vault.Value{}, context.Cause(ctx)
	}
}
