package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxStdin is above the server's limit; the server's error reports the limit.
const maxStdin = 2 << 20

// slowStdin is how long a command waits for stdin before it reports that.
const slowStdin = time.Second

// readStdin reads the standard input. After a while it prints waiting on stderr, unless it is "".
// Ctrl-C ends it; a read of stdin cannot be interrupted, and ends with the process.
func (c *command) readStdin(waiting string) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(c.Stdin, maxStdin))
		done <- read{text, err}
	}()
	slow := time.NewTimer(slowStdin)
	defer slow.Stop()
	for {
		select {
		case r := <-done:
			if r.err != nil {
				return nil, fmt.Errorf("read stdin: %w", r.err)
			}
			return r.text, nil
		case <-slow.C:
			if waiting != "" {
				fmt.Fprintln(c.Stderr, waiting)
			}
		case <-c.Interrupts:
			return nil, &problem{Exit: exitInterrupted, Code: "INTERRUPTED", What: "Interrupted.", Why: "Nothing was sent."}
		}
	}
}

// messageText returns the message: the text from stdin, then the arguments. With --no-input it is
// the arguments alone, if there are any.
func (s *sending) messageText(cmd *cobra.Command, args []string) (string, error) {
	said := strings.Join(args, " ")
	if !utf8.ValidString(said) {
		return "", usageError(cmd, "The message is not UTF-8.", "Convert it with iconv, or upload it as a file and send its id with --attach.")
	}
	if strings.TrimSpace(said) == "" {
		said = ""
	}
	var before string
	switch {
	case !isPiped(s.c.Stdin):
	case said != "" && s.approving.noInput:
		s.printNote("Stdin is not read, as --no-input says: the message is the argument alone.")
	default:
		var err error
		if before, err = s.pipedText(cmd, said != ""); err != nil {
			return "", err
		}
	}
	switch {
	case before == "" && said == "" && len(args) > 0:
		return "", usageError(cmd, "The message is missing.", "The argument is empty, and no text is piped in.")
	case before == "" && said == "":
		return "", usageError(cmd, "The message is missing.", "No argument is given and no text is piped in.")
	case before == "":
		return said, nil
	case said == "":
		return before, nil
	}
	return before + "\n\n" + said, nil
}

// pipedText returns the input on stdin. Beside an argument it may be unintended, such as the rest
// of a loop's input: then its size is reported.
func (s *sending) pipedText(cmd *cobra.Command, beside bool) (string, error) {
	waiting := "Waiting for the message on stdin."
	if beside {
		waiting = "Waiting for stdin, which comes before the message. If nothing is to come: parley send … </dev/null"
	}
	if s.quiet {
		waiting = ""
	}
	text, err := s.c.readStdin(waiting)
	if err != nil {
		return "", err
	}
	if len(text) < maxStdin && !utf8.Valid(text) { // the end may be in the middle of a character
		return "", usageError(cmd, "stdin is not UTF-8.",
			"A message is text: convert it with iconv, or upload it as a file and send its id with --attach.")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "", nil
	}
	text = bytes.TrimRight(text, "\r\n")
	if n := bytes.Count(text, []byte("\n")) + 1; beside {
		s.printNote(fmt.Sprintf("The message begins with the %d %s of stdin.", n, pluralize(n, "line", "lines")))
	}
	return string(text), nil
}
