package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-server/parley/internal/vault"
)

// hiddenInput reads a secret: what is piped in, without the line end, or what
// somebody types, without showing it. It never comes from the command line, where
// others could see it.
func (c *command) hiddenInput(ctx context.Context, prompt string) (vault.Value, error) {
	if c.keyboard() != nil {
		value, err := c.typedInput(ctx, prompt)
		if errors.Is(err, io.EOF) {
			err = &problem{Exit: exitUsage, Code: "USAGE", What: "There is no value.", Why: "None was typed."}
		}
		return value, err
	}
	if !fed(c.Stdin) {
		return vault.Value{}, &problem{Exit: exitUsage, Code: "USAGE", What: "There is no value.", Why: "Nothing is piped in and nobody can be asked.", Do: "Pipe it in: … < file"}
	}
	text, err := io.ReadAll(io.LimitReader(c.Stdin, vault.MaxValue+3)) // the vault refuses less, and says so
	if err != nil {
		return vault.Value{}, fmt.Errorf("read the value: %w", err)
	}
	return vault.NewValue(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))), nil
}

// typedInput asks for a secret at the keyboard. Ctrl-C is what it always is.
func (c *command) typedInput(ctx context.Context, prompt string) (vault.Value, error) {
	fmt.Fprintf(c.Stderr, "%s (it is not shown): ", prompt)
	defer fmt.Fprintln(c.Stderr)
	value, err := c.typist.secret(ctx)
	if errors.Is(err, errKeyInterrupt) {
		select {
		case c.ctrlC <- struct{}{}:
			<-ctx.Done()
		case <-ctx.Done():
		}
		return vault.Value{}, context.Cause(ctx)
	}
	return value, err
}
