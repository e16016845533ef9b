package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
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
		if before > 0 || !v.cancel(ctx, remote) {
			leave(errLeft)
		}
	})
	v.began = time.Now()
	var end error
	for f, err := range frames(ctx) {
		if err == nil {
			err = v.show(f)
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

// cancel asks the server to end the turn. false: there is no session to end yet.
func (v *viewer) cancel(ctx context.Context, remote *client.Client) bool {
	v.mu.Lock()
	session := v.session
	v.mu.Unlock()
	if session == "" {
		return false
	}
	v.say("Cancelling; Ctrl-C again leaves the turn running.")
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if _, err := remote.Cancel(ctx, session); err != nil && ctx.Err() == nil {
		v.say("It could not be cancelled: " + err.Error())
	}
	return true
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

// show prints one frame.
func (v *viewer) show(f client.Frame) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.ID != "" {
		v.lastID = f.ID
	}
	if v.output == "stream-json" {
		line, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("write the frame: %w", err)
		}
		if _, err := fmt.Fprintf(v.c.Stdout, "%s\n", line); err != nil {
			return err
		}
	}
	var b struct {
		SessionID string   `json:"session_id"`
		Text      string   `json:"text"`
		Tool      string   `json:"tool"`
		Summary   string   `json:"summary"`
		OK        bool     `json:"ok"`
		Output    string   `json:"output"`
		Truncated bool     `json:"truncated"`
		In        int64    `json:"input_tokens"`
		Out       int64    `json:"output_tokens"`
		Cost      *float64 `json:"cost_usd"`
		Model     string   `json:"model"`
		failure
	}
	if err := json.Unmarshal(f.Data, &b); err != nil {
		return fmt.Errorf("read a frame of the kind %s: %w", plainLine(string(f.Event)), err)
	}
	switch f.Event {
	case "open":
		v.session = b.SessionID
		if v.verbose {
			v.tell("session " + plainLine(b.SessionID))
		}
	case "text":
		return v.text(b.Text)
	case "tool_use":
		v.tell("→ " + plainLine(strings.TrimSpace(b.Tool+"  "+b.Summary)))
	case "tool_result":
		if !b.OK {
			v.tell("✗ " + plainLine(b.Tool+" failed: "+firstLine(b.Output)))
		} else if v.verbose {
			v.tell("← " + plainLine(b.Tool) + "\n" + visible(b.Output))
		}
	case "usage":
		v.usage(b.In, b.Out, b.Cost, b.Model)
	case "input_required":
		v.asked = f.Data
	case "error":
		v.failed = new(b.failure)
	}
	return nil
}

// text prints a piece of the answer. A terminal gets no control characters from a
// model; a file gets exactly what was said.
func (v *viewer) text(s string) error {
	if v.first == 0 {
		v.first = time.Since(v.began)
	}
	if v.output != "text" || s == "" {
		return nil
	}
	v.inLine = !strings.HasSuffix(s, "\n")
	if v.screen {
		s = visible(s)
	}
	_, err := io.WriteString(v.c.Stdout, s)
	return err
}

func (v *viewer) usage(in, out int64, cost *float64, model string) {
	line := fmt.Sprintf("%s in · %s out", thousands(in), thousands(out))
	if cost != nil {
		line += fmt.Sprintf(" · $%.4f", *cost)
	}
	if v.first > 0 {
		line += fmt.Sprintf(" · %.1f s first token", v.first.Seconds())
	}
	v.tell(line + " · " + plainLine(model))
}

// say is tell for those who do not hold mu.
func (v *viewer) say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tell(line)
}

// tell writes a line to stderr. On a terminal the answer's line ends first.
func (v *viewer) tell(line string) {
	if v.quiet {
		return
	}
	if v.inLine && v.screen {
		fmt.Fprintln(v.c.Stderr)
		v.inLine = false
	}
	fmt.Fprintln(v.c.Stderr, v.dim(line))
}

// endLine ends the answer with a line end.
func (v *viewer) endLine() {
	if v.inLine && v.output == "text" {
		fmt.Fprintln(v.c.Stdout)
		v.inLine = false
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// thousands writes 2914 as 2,914.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
