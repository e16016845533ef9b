package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/event"
)

const (
	pace    = 200 * time.Millisecond // between two notifications about text
	maxTail = 500                    // bytes of the text so far that a notification has
)

// progress tells the client how a turn goes, where the client wants to know: pieces of text
// in their pace, everything else at once. It is a courtesy: what is lost of it is in the
// result.
type progress struct {
	notify func(message string) error // nil: nobody wants to know
	text   string                     // the end of what was said
	fresh  bool                       // there is text that was not told
	told   time.Time

	mu     sync.Mutex
	newest string // notification
	sent   time.Time
	gone   bool // nobody is there any more
}

// progress is that of a call.
func (c *call) progress(ctx context.Context) *progress {
	p := &progress{}
	if c.message.token != nil {
		n := 0.0
		p.notify = func(message string) error {
			n++
			return c.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: c.message.token, Progress: n, Message: message})
		}
	}
	return p
}

// begin tells first where to go on if the connection is lost.
func (p *progress) begin(session uuid.UUID) {
	p.send(fmt.Sprintf("The agent has the message. [session_id: %s]", session))
}

// see takes an event in.
func (p *progress) see(ev *event.Event) {
	if p.notify == nil {
		return
	}
	switch ev.Kind {
	case event.KindText:
		var b event.Text
		if json.Unmarshal(ev.Data, &b) == nil {
			p.text, p.fresh = tail(p.text+b.Text), true
		}
	case event.KindToolUse:
		var b event.ToolUse
		if json.Unmarshal(ev.Data, &b) == nil {
			p.tell(b.Tool + ": " + b.Summary)
		}
	case event.KindToolResult:
		var b event.ToolResult
		if json.Unmarshal(ev.Data, &b) == nil {
			how := "done"
			if !b.OK {
				how = "failed"
			}
			p.tell(b.Tool + ": " + how)
		}
	case event.KindInputRequired:
		p.tell("The agent waits for a person.")
	}
}

// flush tells the text so far, if it is time to.
func (p *progress) flush() {
	if p.fresh && time.Since(p.told) >= pace {
		p.tell("")
	}
}

// tell sends what is there of text, then something else.
func (p *progress) tell(message string) {
	if p.fresh {
		p.fresh, p.told = false, time.Now()
		p.send(p.text)
	}
	if message != "" {
		p.send(message)
	}
}

func (p *progress) send(message string) {
	if p.notify == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest, p.sent = message, time.Now()
	p.gone = p.gone || p.notify(message) != nil
}

// alive repeats what was told last whenever nothing was for a while, until stop is called: a
// client that would give up counts notifications, and no comments.
func (p *progress) alive(every time.Duration) (stop func()) {
	if p.notify == nil {
		return func() {}
	}
	return repeat(every, func() time.Duration {
		p.mu.Lock()
		newest, quiet := p.newest, time.Since(p.sent)
		p.mu.Unlock()
		if quiet < every {
			return every - quiet
		}
		if newest != "" {
			p.send(newest)
		}
		return every
	})
}

// tail is the end of a text that begins at a character.
func tail(text string) string {
	from := max(0, len(text)-maxTail)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
