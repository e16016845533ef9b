package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/parley-server/parley/internal/store/vault"
)

// keyboard reads the user's input at a terminal. One goroutine reads for as long as the command
// runs: a read cannot be canceled, and a question that is answered elsewhere must not consume the
// answer to the next one.
type keyboard struct {
	tty   *os.File
	start sync.Once
	typed chan []byte   // closed: end of input
	gone  chan struct{} // closed: the command ends
	rest  []byte        // typed and not read yet
}

// openKeyboard returns nil if stdin is not a terminal.
func (c *command) openKeyboard() *keyboard {
	f, ok := c.Stdin.(*os.File)
	if c.typist == nil && ok && term.IsTerminal(int(f.Fd())) {
		c.typist = &keyboard{tty: f, typed: make(chan []byte), gone: make(chan struct{})}
	}
	return c.typist
}

// isAttended reports whether a user at a terminal can see and answer a question.
func (c *command) isAttended() bool { return c.openKeyboard() != nil && isTerminal(c.Stderr) }

// closeTerminal releases the terminal, except for a pending read.
func (k *keyboard) closeTerminal() {
	if k != nil {
		close(k.gone)
	}
}

func (k *keyboard) pumpInput() {
	defer close(k.typed)
	for {
		buf := make([]byte, 4096)
		n, err := k.tty.Read(buf)
		if err != nil {
			return
		}
		select {
		case k.typed <- buf[:n]:
		case <-k.gone:
			return
		}
	}
}

// waitInput waits for input; io.EOF is Ctrl-D, or a terminal that was closed.
func (k *keyboard) waitInput(ctx context.Context) error {
	k.start.Do(func() { go k.pumpInput() })
	select {
	case chunk, ok := <-k.typed:
		if !ok {
			return io.EOF
		}
		k.rest = append(k.rest, chunk...)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readLine reads a line.
func (k *keyboard) readLine(ctx context.Context) (string, error) {
	for {
		if line, rest, ok := bytes.Cut(k.rest, []byte("\n")); ok {
			k.rest = rest
			return string(line), nil
		}
		if err := k.waitInput(ctx); err != nil {
			return "", err
		}
	}
}

const (
	calm     = 425 * time.Millisecond  // time without a key: the user is not typing something else
	calmWait = 1500 * time.Millisecond // a cat on the keyboard
)

// dropInput drops input from before a question, so that it is not taken for an answer.
func (k *keyboard) dropInput(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, calmWait, errCalm)
	defer cancel()
	for err := error(nil); !errors.Is(err, errCalm); {
		k.rest = nil
		quiet, done := context.WithTimeoutCause(ctx, calm, errCalm)
		err = k.waitInput(quiet)
		done()
		if err != nil && !errors.Is(err, errCalm) {
			return err
		}
	}
	return nil
}

var errCalm = errors.New("nothing is typed")

// errKeyInterrupt is a Ctrl-C that was typed as a key.
var errKeyInterrupt = errors.New("interrupted")

// readSecret reads a line that the terminal does not echo.
func (k *keyboard) readSecret(ctx context.Context) (vault.Value, error) {
	before, err := term.MakeRaw(int(k.tty.Fd()))
	if err != nil {
		return vault.Value{}, fmt.Errorf("hide what is typed: %w", err)
	}
	defer func() { _ = term.Restore(int(k.tty.Fd()), before) }()
	text := []byte{}
	for {
		if len(k.rest) == 0 {
			if err := k.waitInput(ctx); err != nil {
				return vault.Value{}, err
			}
		}
		key := k.rest[0]
		k.rest = k.rest[1:]
		switch key {
		case '\r', '\n':
			return vault.NewValue(text), nil
		case 'C' - '@':
			return vault.Value{}, errKeyInterrupt
		case 'D' - '@':
			if len(text) == 0 {
				return vault.Value{}, io.EOF
			}
		case 'U' - '@':
			text = text[:0]
		case '\b', 127:
			_, n := utf8.DecodeLastRune(text)
			text = text[:len(text)-n]
		default:
			if len(text) <= vault.MaxValue { // the vault rejects a longer one, with an error
				text = append(text, key)
			}
		}
	}
}
