package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/client"
)

// viewer shows a stream: the answer on stdout, the rest on stderr.
type viewer struct {
	c       *command
	output  string
	quiet   bool
	verbose bool
	dim     func(string) string
	screen  bool // stdout is a terminal

	mu      sync.Mutex // Ctrl-C comes in between; guards all below and what is written
	began   time.Time
	first   time.Duration // until the first text
	inLine  bool          // the answer so far does not end with a line end
	failed  *failure
	asked   json.RawMessage // an input_required that nobody here answers
	session string
	lastID  string
	shown   int  // frames
	wanted  bool // a cancel waits for the session's id
}

// failure is the body of an error frame.
type failure struct {
	Code        string `json:"code"`
	Message     string `json:"message"`
	Recoverable bool   `json:"recoverable"`
}

func (c *command) viewer(output string, quiet, verbose bool) *viewer {
	v := &viewer{c: c, output: output, quiet: quiet, verbose: verbose, screen: terminal(c.Stdout), dim: func(s string) string { return s }}
	if c.colours() {
		v.dim = func(s string) string { return "\x1b[2m" + s + "\x1b[0m" }
	}
	return v
}

// watch shows frames until done. The first Ctrl-C cancels the turn, the second
// leaves it running.
func (v *viewer) watch(ctx context.Context, remote *client.Client, frames func(context.Context) iter.Seq2[client.Frame, error]) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stop := v.c.onInterrupt(func(before int) {
		if before > 0 {
			leave(errLeft)
			return
		}
		v.say("Cancelling; Ctrl-C again leaves the turn running.")
		v.cancel(ctx, remote)
	})
	v.began = time.Now()
	var end error
	for f, err := range frames(ctx) {
		if err == nil {
			err = v.show(f)
		}
		if err == nil && v.late() {
			v.cancel(ctx, remote)
		}
		if err != nil {
			end = err
			break
		}
		if v.asked != nil {
			break
		}
	}
	return v.finish(end, stop())
}

// cancel asks the server to end the turn. Before the open frame nobody knows which:
// then it is done when that comes.
func (v *viewer) cancel(ctx context.Context, remote *client.Client) {
	v.mu.Lock()
	session := v.session
	v.wanted = session == ""
	v.mu.Unlock()
	if session == "" {
		return
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if _, err := remote.Cancel(ctx, session); err != nil && !errors.Is(context.Cause(ctx), errLeft) {
		v.say("It could not be cancelled: " + plainLine(err.Error()))
	}
}

// late reports once whether a cancel has waited for the session's id.
func (v *viewer) late() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	late := v.wanted && v.session != ""
	v.wanted = v.wanted && !late
	return late
}

// finish turns the end of a stream into the command's.
func (v *viewer) finish(err error, interrupts int) error {
	v.endLine()
	switch {
	case err == nil && interrupts > 0 && v.failed == nil && v.asked == nil:
		return nil // the answer was complete first
	case errors.Is(err, errLeft) && v.session == "":
		v.say("Interrupted before an answer came; the message may have arrived.")
		return exitError(exitInterrupted)
	case errors.Is(err, errLeft):
		v.say("The turn goes on without you. " + reattach(v.session, v.lastID))
		return exitError(exitInterrupted)
	case err != nil:
		return err
	case v.asked != nil:
		fmt.Fprintln(v.c.Stderr, string(v.asked))
		v.say("The agent waits for an answer, for ten minutes. " + reattach(v.session, v.lastID))
		return exitError(exitInputRequired)
	case v.failed == nil:
		return nil
	}
	exit := exitOf(v.failed.Code, interrupts > 0)
	if exit == exitInterrupted {
		v.say("Cancelled.")
		return exitError(exit)
	}
	p := &problem{Exit: exit, Code: v.failed.Code, What: "The turn failed: " + v.failed.Code + ".", Why: v.failed.Message, Do: "Change the message, or look into the server's log."}
	if v.failed.Recoverable {
		p.Do = "Send the message again."
	}
	if v.failed.Code == "canceled" {
		p.What, p.Do = "Somebody else cancelled the turn.", "Send the message again if it is still wanted."
	}
	return p
}
