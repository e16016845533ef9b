package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/text"
)

// fileFlag adds the flag for a secret in a file.
func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "file", "", "read the value from a file, such as a private key; its last line end is not part of the value")
	_ = cmd.MarkFlagFilename("file")
}

// hiddenInput reads a secret from a file, from stdin or from the keyboard, without showing it. The
// last newline is not part of it. It never comes from the command line, where other users could see
// it.
func (c *command) hiddenInput(ctx context.Context, prompt, file string) (vault.Value, error) {
	if file != "" {
		f, err := os.Open(c.resolvePath(file))
		if err != nil {
			return vault.Value{}, &problem{Exit: exitUsage, Code: "USAGE", What: "Cannot read the value.", Why: err.Error() + "."}
		}
		defer f.Close()
		return readSecret(f)
	}
	if c.openKeyboard() != nil {
		value, err := c.typedInput(ctx, prompt)
		if errors.Is(err, io.EOF) {
			err = &problem{Exit: exitUsage, Code: "USAGE", What: "The value is missing.", Why: "None was typed."}
		}
		return value, err
	}
	if !isFed(c.Stdin) {
		return vault.Value{}, &problem{Exit: exitUsage, Code: "USAGE", What: "The value is missing.",
			Why: "Nothing is piped in, and no terminal is available to ask for it.", Do: "Pipe it in: … < file"}
	}
	return readSecret(c.Stdin)
}

// readSecret reads a secret without its last newline.
func readSecret(from io.Reader) (vault.Value, error) {
	plain, err := io.ReadAll(io.LimitReader(from, vault.MaxValue+3)) // the vault's limit is lower, and its error explains it
	if err != nil {
		return vault.Value{}, fmt.Errorf("read the value: %w", err)
	}
	return vault.NewValue(bytes.TrimSuffix(bytes.TrimSuffix(plain, []byte("\n")), []byte("\r"))), nil
}

// warnAboutValue warns about a value that Parley can protect less well than others.
func (c *command) warnAboutValue(name string, value vault.Value, inBody bool) {
	if value.HasLines() && !inBody {
		fmt.Fprintf(c.Stderr, "Warning: the value of %s has several lines, and such a value is sent in request bodies only. "+
			"No request can carry it before it is registered with --in-body.\n", text.Escape(name))
	}
	if len(value.Reveal()) > 0 && value.IsGuessable() {
		fmt.Fprintf(c.Stderr, "Warning: the value of %s is short or has few different characters, so that it can be guessed. "+
			"It is hidden only in the answers to requests that carry it, and a host that returns what it receives can reveal it. "+
			"Use a long random value, or hosts that do not return what they receive.\n", text.Escape(name))
	}
}

// typedInput asks for a secret at the keyboard. Ctrl-C keeps its meaning.
func (c *command) typedInput(ctx context.Context, prompt string) (vault.Value, error) {
	fmt.Fprintf(c.Stderr, "%s (not shown): ", prompt)
	defer fmt.Fprintln(c.Stderr)
	value, err := c.typist.readSecret(ctx)
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
