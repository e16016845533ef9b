package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
)

// viewer shows a stream: the answer on stdout, the rest on stderr. It answers the questions of the
// turn, or asks the user.
type viewer struct {
	c         *command
	remote    *client.Client
	output    string
	quiet     bool
	verbose   bool
	result    bool // print only the structured result
	replayed  bool // questions may be old
	reading   bool // the turn was started elsewhere: Ctrl-C leaves it running
	approving approving
	dim       func(string) string
	screen    bool // stdout is a terminal

	mu      sync.Mutex // guards these fields and the output against Ctrl-C
	began   time.Time
	first   time.Duration // time until the first text; negative: unknown
	inLine  bool          // the answer so far does not end with a newline
	failed  *failure
	session string
	lastID  string
	shown   int  // frames after open
	wanted  bool // a cancel waits for the session's id

	// Only the goroutine that watches uses these.
	open   *question            // the question that the turn waits for
	denied bool                 // an approval was denied or expired
	calls  *client.ToolRequired // calls without a result, with which the command ends
}

// sendAgain is the advice for a failure that another turn may not have. Messages of the server have it
// with the time to wait.
const sendAgain = "Send the message again"

// failure is the body of an error frame.
type failure struct {
	Code        string `json:"code"`
	Message     string `json:"message"`
	Recoverable bool   `json:"recoverable"`
}

func (c *command) newViewer(remote *client.Client, output string) *viewer {
	v := &viewer{c: c, remote: remote, output: output, screen: isTerminal(c.Stdout), dim: func(s string) string { return s }}
	if c.hasColours() {
		v.dim = func(s string) string { return "\x1b[2m" + s + "\x1b[0m" }
	}
	return v
}

// watchFrames shows frames until done. The first Ctrl-C cancels the turn, the second leaves it
// running; a viewer that only reads leaves with the first.
func (v *viewer) watchFrames(ctx context.Context, frames func(context.Context) iter.Seq2[client.Frame, error]) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stop := v.c.onInterrupt(func(before int) {
		if before > 0 || v.reading {
			leave(errLeft)
			return
		}
		v.cancelTurn(ctx)
	})
	v.began = time.Now()
	var end error
	for f, err := range frames(ctx) {
		if err == nil {
			err = v.noteAnswer(ctx) // otherwise no frame would report it
		}
		if err == nil {
			err = v.showFrame(f)
		}
		if err == nil && v.takeLateCancel() {
			v.cancelTurn(ctx)
		}
		if err == nil && f.Event == client.KindInputRequired {
			err = v.askQuestion(ctx, leave, f)
		}
		if err == nil && f.Event == client.KindToolRequired {
			err = v.answerCalls(ctx, f)
		}
		if err != nil {
			end = err
			break
		}
	}
	if v.open != nil {
		v.open.endQuestion()
	}
	return v.finishStream(end, stop())
}

// cancelTurn asks the server to cancel the turn. Before the open frame the turn is unknown: then it
// is canceled when the frame arrives.
func (v *viewer) cancelTurn(ctx context.Context) {
	v.mu.Lock()
	session := v.session
	v.wanted = session == ""
	v.mu.Unlock()
	if session == "" {
		v.printLine("Canceling as soon as the server has accepted the message; Ctrl-C again ends the command at once.")
		return
	}
	v.printLine("Canceling; Ctrl-C again leaves the turn running.")
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if _, err := v.remote.Cancel(ctx, session); err != nil && !errors.Is(context.Cause(ctx), errLeft) {
		v.printLine("It could not be canceled: " + plainLine(err.Error()))
	}
}

// takeLateCancel reports once whether a cancel has waited for the session's id.
func (v *viewer) takeLateCancel() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	late := v.wanted && v.session != ""
	v.wanted = v.wanted && !late
	return late
}

// finishStream returns the error of the command for the end of a stream.
func (v *viewer) finishStream(err error, interrupts int) error {
	v.endLine()
	switch {
	case errors.Is(err, errLeft) && v.session == "":
		v.printLine("Interrupted before the answer; the server may have accepted the message.")
		return exitError(exitInterrupted)
	case errors.Is(err, errLeft) && v.reading:
		v.printLine("The turn continues; parley sessions cancel " + plainLine(v.session) + " ends it. " + resumeCommand(v.session, v.lastID))
		return exitError(exitInterrupted)
	case errors.Is(err, errLeft):
		v.printLine("The turn continues on the server. " + resumeCommand(v.session, v.lastID))
		return exitError(exitInterrupted)
	case errors.Is(err, errLater) && v.calls != nil:
		fmt.Fprintln(v.c.Stderr, callsHint(*v.calls)+"\n"+resumeCommand(v.session, v.lastID))
		return exitError(exitInputRequired)
	case errors.Is(err, errLater):
		v.printLine(v.open.answerHint() + " " + resumeCommand(v.session, v.lastID))
		return exitError(exitInputRequired)
	case err != nil && interrupts > 0 && v.session == "":
		v.printLine("It could not be canceled: the server may have accepted the message.")
		return err
	case err != nil:
		return err
	case v.failed == nil && v.denied:
		return exitError(exitDenied)
	case v.failed == nil:
		return nil // even if it was interrupted: the answer was complete first
	}
	exit := exitOf(v.failed.Code, interrupts > 0 && !v.reading)
	if exit == exitInterrupted {
		v.printLine("Canceled.")
		return exitError(exit)
	}
	p := &problem{Exit: exit, Code: v.failed.Code, What: "The turn failed: " + v.failed.Code + ".", Why: v.failed.Message,
		Do: "Change the message, or read the server's log."}
	switch {
	case strings.Contains(v.failed.Message, sendAgain):
		p.Do = ""
	case v.failed.Recoverable:
		p.Do = sendAgain + "."
	case v.failed.Code == string(event.ModelError): // its message says what to do
		p.Do = ""
	}
	if v.failed.Code == string(event.SessionGone) {
		p.What, p.Do = "No events to show.", "parley sessions show "+plainLine(v.session)+" shows what the session has."
	}
	if v.failed.Code == "canceled" {
		p.What, p.Do = "Another client canceled the turn.", sendAgain+" if it is still wanted."
	}
	return p
}
