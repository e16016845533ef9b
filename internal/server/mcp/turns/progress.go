package turns

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server/mcp/tools"
	"github.com/parley-server/parley/internal/text/render"
)

const (
	pace = 200 * time.Millisecond // minimum time between two notifications about text
	// A notification contains the end of the text so far, of at most
	maxTail  = 500 // bytes
	maxLines = 10
)

// progress notifies a client that requested it of a turn's progress: text at intervals, everything
// else at once. The agent's text is marked, so that it cannot pass for the server's. Lost
// notifications are harmless: the result has everything.
type progress struct {
	notify   func(message string) error // nil: not requested
	text     string                     // end of the text so far
	fresh    bool                       // some text was not sent
	lastSent time.Time

	mu     sync.Mutex
	newest string // the latest notification
	sent   time.Time
	gone   bool // the client has left
}

// newProgress returns the progress of a call.
func newProgress(ctx context.Context, c *tools.Call) *progress {
	p := &progress{}
	if token := c.ProgressToken(); token != nil {
		n := 0.0
		p.notify = func(message string) error {
			n++
			return c.Request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message})
		}
	}
	return p
}

// sendSession sends the session first, so that the client can continue after a lost connection.
func (p *progress) sendSession(session uuid.UUID) {
	p.send(fmt.Sprintf("The agent has the message. [session_id: %s]", session))
}

// reportEvent processes an event.
func (p *progress) reportEvent(body event.Body) {
	if p.notify == nil {
		return
	}
	switch b := body.(type) {
	case event.Text:
		p.text, p.fresh = lastLines(p.text+b.Text), true
	case event.ToolUse:
		p.flushThen("The agent uses a tool:\n" + render.Marked(b.Tool+": "+b.Summary))
	case event.ToolResult:
		how := "The tool is done:\n"
		if !b.OK {
			how = "The tool has failed:\n"
		}
		p.flushThen(how + render.Marked(b.Tool))
	case event.InputRequired:
		p.flushThen("The agent waits for a person.")
	case event.ConnectRequired:
		p.flushThen("The agent waits for access to the tool server " + b.Server + ".")
	case event.ToolRequired:
		p.flushThen("The agent waits for results of tools of the program that sent the message.")
	}
}

// flush sends the text so far, if it is due.
func (p *progress) flush() {
	if p.fresh && time.Since(p.lastSent) >= pace {
		p.flushThen("")
	}
}

// flushThen sends the text so far, then a message.
func (p *progress) flushThen(message string) {
	if p.fresh {
		p.fresh, p.lastSent = false, time.Now()
		p.send(render.Agent(p.text))
	}
	p.send(message)
}

func (p *progress) send(message string) {
	if p.notify == nil || message == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest, p.sent = message, time.Now()
	p.gone = p.gone || p.notify(message) != nil
}

// keepAlive repeats the last notification after each quiet interval until stop is called: clients
// count notifications against their time-out, not comments.
func (p *progress) keepAlive(every time.Duration) (stop func()) {
	if p.notify == nil {
		return func() {}
	}
	return repeatUntilStopped(every, func() time.Duration {
		p.mu.Lock()
		newest, quiet := p.newest, time.Since(p.sent)
		p.mu.Unlock()
		if quiet < every {
			return every - quiet
		}
		p.send(newest)
		return every
	})
}

// lastLines returns the end of a text, from the start of a character.
func lastLines(text string) string {
	from := max(0, len(text)-maxTail)
	if lines := strings.SplitAfter(text, "\n"); len(lines) > maxLines {
		from = max(from, len(text)-len(strings.Join(lines[len(lines)-maxLines:], "")))
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// repeatUntilStopped calls do after a pause, and again after each pause that do returns, until stop
// is called.
func repeatUntilStopped(after time.Duration, do func() time.Duration) (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		timer := time.NewTimer(after)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				timer.Reset(do())
			}
		}
	}()
	return func() {
		close(done)
		<-gone
	}
}
