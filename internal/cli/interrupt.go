package cli

import (
	"context"
	"errors"
	"sync"
)

// interruptContext returns a context that the first Ctrl-C cancels. The second ends the process.
func (c *command) interruptContext(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-c.Interrupts:
			case <-c.ctrlC:
			case <-stopped:
				return
			}
			cancel()
			if n > 0 && c.Exit != nil {
				c.Exit(exitInterrupted)
			}
		}
	}()
	return ctx, func() { cancel(); close(stopped); <-done }
}

// onInterrupt calls what for every Ctrl-C, with the number of earlier ones. stop ends that and
// returns their number.
func (c *command) onInterrupt(what func(before int)) (stop func() int) {
	n := 0
	stopped := make(chan struct{})
	var g sync.WaitGroup
	g.Go(func() {
		for {
			select {
			case <-c.Interrupts:
			case <-c.ctrlC:
			case <-stopped:
				return
			}
			before := n
			n++
			g.Go(func() { what(before) }) // the next one must not wait for it
		}
	})
	return func() int { close(stopped); g.Wait(); return n }
}

// resumeCommand returns the command that resumes a stream.
func resumeCommand(session, lastID string) string {
	if session == "" {
		return "parley sessions list shows it."
	}
	line := "Resume it: parley sessions tail " + plainLine(session)
	if lastID != "" {
		line += " --after " + plainLine(lastID)
	}
	return line
}

// errLeft ends a stream that the reader has left.
var errLeft = errors.New("left by its reader")
