package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/turn"
)

const (
	pace    = 200 * time.Millisecond // between two notifications about text
	maxTail = 500                    // bytes of the text so far that a notification has
)

// progress tells the client how a turn goes, where the client wants to know: pieces of text
// in their pace, everything else at once. It is a courtesy: what is lost of it is in the
// result.
type progress struct {
	req   *mcp.CallToolRequest
	token json.RawMessage // nil: the client does not want to know
	n     float64
	text  string // the end of what was said
	fresh bool   // there is text that was not told
	told  time.Time
}

func (c *call) progress() *progress {
	return &progress{req: c.req, token: c.message.token}
}

// begin tells first where to go on if the connection is lost.
func (p *progress) begin(ctx context.Context, started turn.Started) {
	p.send(ctx, fmt.Sprintf("The agent has the message. [session_id: %s]", started.Session))
}

// see takes an event in.
func (p *progress) see(ctx context.Context, ev *event.Event) {
	if p.token == nil {
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
			p.tell(ctx, b.Tool+": "+b.Summary)
		}
	case event.KindToolResult:
		var b event.ToolResult
		if json.Unmarshal(ev.Data, &b) == nil {
			how := "done"
			if !b.OK {
				how = "failed"
			}
			p.tell(ctx, b.Tool+": "+how)
		}
	case event.KindInputRequired:
		p.tell(ctx, "The agent waits for a person.")
	}
}

// flush tells the text so far, if it is time to.
func (p *progress) flush(ctx context.Context) {
	if p.fresh && time.Since(p.told) >= pace {
		p.tell(ctx, "")
	}
}

// tell sends what is there of text, then something else.
func (p *progress) tell(ctx context.Context, message string) {
	if p.fresh {
		p.fresh, p.told = false, time.Now()
		p.send(ctx, p.text)
	}
	if message != "" {
		p.send(ctx, message)
	}
}

func (p *progress) send(ctx context.Context, message string) {
	if p.token == nil {
		return
	}
	p.n++
	err := p.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: p.n, Message: message})
	if err != nil { // nobody is there any more
		p.token = nil
	}
}

// tail is the end of a text that begins at a character.
func tail(text string) string {
	from := max(0, len(text)-maxTail)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
