package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
)

// Encoder projects the rows of a turn to a chat completion, streamed or complete.
type Encoder struct {
	about     About
	content   strings.Builder
	refusal   strings.Builder
	reasoning strings.Builder
	head      int  // bytes of content before the agent's
	step      int  // offset in content of the newest step's text
	begins    bool // the next text is the first of its step
	broke     bool // other data was sent since the last text
	cut       bool // the model's last reply was cut
	acted     bool // a tool was called
	acts      acts
	usage     usage
	error     *event.Error
	reason    string // finish reason; "": not finished
}

// NewEncoder returns an encoder.
func NewEncoder(about About) *Encoder { return &Encoder{about: about, begins: true} }

// Begin implements server.Encoder.
func (t *Encoder) Begin() []any {
	frames := []any{t.chunk(delta{Role: "assistant", Content: new("")}, nil)}
	var lines []string
	if t.about.Note != "" {
		lines = append(lines, t.about.Note)
	}
	for _, f := range t.about.Rejected {
		lines = append(lines, fmt.Sprintf("The agent does not have the file %s: %s", cmp.Or(f.Filename, f.FileID.String()), f.Reason))
	}
	if lines == nil {
		return frames
	}
	frames = append(frames, t.aside(strings.Join(lines, "\n"))...)
	t.head, t.broke = t.content.Len(), true
	return frames
}

// Row implements server.Encoder.
func (t *Encoder) Row(row server.Row) []any {
	outcome := t.acts.row(row.Body)
	if _, ok := row.Body.(event.ToolUse); ok {
		t.acted = true
	}
	if row.Seen {
		return nil
	}
	switch b := row.Body.(type) {
	case event.Text:
		text := b.Text
		if t.begins && text != "" { // always a paragraph of its own
			t.begins, t.step, text = false, t.content.Len(), strings.TrimPrefix(text, event.StepBreak)
		}
		return t.aside(text)
	case event.ToolUse:
		t.broke = true
		return t.act(b.Summary)
	case event.ToolResult:
		if outcome != "" {
			return t.act(outcome)
		}
	case event.Reply:
		t.cut, t.begins, t.broke = b.Cut, true, true
		t.usage.Prompt += b.Usage.InputTokens
		t.usage.Completion += b.Usage.OutputTokens
		t.usage.Total = t.usage.Prompt + t.usage.Completion
	case event.InputRequired:
		if row.Pending {
			t.broke = true
			return t.Say(question(b, t.about))
		}
	case event.Structured:
		return t.text(string(b.Result))
	case event.Attachment:
		return t.files(b.Attachments)
	case event.Error:
		t.error = &b
	case event.Done:
		return t.done()
	}
	return nil
}

func (t *Encoder) done() []any {
	switch {
	case t.error == nil && t.cut:
		return t.finish("length")
	case t.error == nil:
		return t.finish("stop")
	case t.error.Code == event.ContentRefused:
		return t.finish("content_filter")
	}
	return t.Fail(*t.error)
}

// Fail implements server.Encoder.
func (t *Encoder) Fail(e event.Error) []any {
	t.error = &e
	return []any{failed(e), server.RawFrame("[DONE]")}
}

// Say ends the answer with a text that is not an answer. Clients that expect JSON get it as a
// refusal, which they handle.
func (t *Encoder) Say(text string) []any {
	if !t.about.Structured {
		return append(t.text(text), t.finish("stop")...)
	}
	t.refusal.WriteString(text)
	return append([]any{t.chunk(delta{Refusal: &text}, nil)}, t.finish("stop")...)
}

// lastStep reduces the content to that of a complete answer: the text of the last step, with the
// service's text before and after it.
func (t *Encoder) lastStep() {
	content := t.content.String()
	head, answer := content[:t.head], strings.TrimPrefix(content[max(t.head, t.step):], event.StepBreak)
	t.content.Reset()
	t.head, t.step = 0, 0
	if head != "" && answer != "" {
		head += event.StepBreak
	}
	t.content.WriteString(head + answer)
}

// Completion returns the complete answer with its status. It is called last.
func (t *Encoder) Completion() (status int, answer any) {
	if t.error != nil && t.reason == "" {
		return statusOf(t.error.Code, t.acted), failed(*t.error)
	}
	m := message{Role: "assistant", Reasoning: t.reasoning.String()}
	if t.refusal.Len() > 0 {
		m.Refusal = new(t.refusal.String())
	} else {
		t.lastStep()
		m.Content = new(t.content.String())
	}
	return http.StatusOK, completion{ID: t.about.ID, Object: "chat.completion", Created: t.about.Created, Model: t.about.Model, Session: t.about.Session, Usage: t.usage,
		Choices: [1]whole{{Message: m, FinishReason: t.reason}}}
}

func (t *Encoder) chunk(d delta, reason *string) chunk {
	c := chunk{ID: t.about.ID, Object: "chat.completion.chunk", Created: t.about.Created, Model: t.about.Model, Session: t.about.Session,
		Choices: []choice{{Delta: d, FinishReason: reason}}}
	if t.about.Usage {
		c.Usage = (*usage)(nil)
	}
	return c
}

// text adds to the content. Text after a tool call begins a new paragraph.
func (t *Encoder) text(s string) []any {
	if t.broke && t.content.Len() > 0 {
		s = "\n\n" + s
	}
	t.broke = false
	t.content.WriteString(s)
	return []any{t.chunk(delta{Content: &s}, nil)}
}

func (t *Encoder) think(s string) []any {
	t.reasoning.WriteString(s)
	return []any{t.chunk(delta{Reasoning: s}, nil)}
}

// act adds a line about a tool call of the agent.
func (t *Encoder) act(summary string) []any {
	if before := t.reasoning.String(); before != "" && !strings.HasSuffix(before, "\n") {
		summary = "\n" + summary
	}
	return t.think(summary + "\n")
}

// aside adds text, or reasoning if the content is JSON.
func (t *Encoder) aside(s string) []any {
	if !t.about.Structured {
		return t.text(s)
	}
	if t.broke {
		t.broke, s = false, "\n"+s
	}
	return t.think(s)
}

// files adds links after the text.
func (t *Encoder) files(list []event.File) []any {
	var links []string
	for _, f := range list {
		name := strings.NewReplacer("[", "(", "]", ")", "\n", " ", "\r", " ").Replace(f.Filename)
		links = append(links, fmt.Sprintf("[%s](%s)", name, server.AbsoluteURL(t.about.Base, f.DownloadURL)))
	}
	t.broke = true
	return t.aside(strings.Join(links, "\n"))
}

func (t *Encoder) finish(reason string) []any {
	t.reason = reason
	frames := []any{t.chunk(delta{}, &reason)}
	if t.about.Usage {
		last := t.chunk(delta{}, nil)
		last.Choices, last.Usage = []choice{}, &t.usage
		frames = append(frames, last)
	}
	return append(frames, server.RawFrame("[DONE]"))
}
