package openaiapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
)

// Telling projects the rows of a turn to a chat completion, in pieces and as a whole.
type Telling struct {
	about     About
	content   strings.Builder
	reasoning strings.Builder
	broke     bool // something else was told since the last text
	usage     usage
	error     *event.Error
	reason    string // why it ended; "": it has not
}

// NewTelling makes a projection.
func NewTelling(about About) *Telling { return &Telling{about: about} }

// Begin implements dialect.Projection.
func (t *Telling) Begin() []any {
	return []any{t.chunk(delta{Role: "assistant", Content: new("")}, nil)}
}

// Row implements dialect.Projection.
func (t *Telling) Row(row dialect.Row) []any {
	if row.Seen {
		return nil
	}
	switch b := row.Body.(type) {
	case event.Text:
		if t.about.Structured {
			return t.think(b.Text)
		}
		return t.text(b.Text)
	case event.ToolUse:
		t.broke = true
		return t.think(b.Summary + "\n")
	case event.Reply:
		t.usage.Prompt += b.Usage.InputTokens
		t.usage.Completion += b.Usage.OutputTokens
		t.usage.Total = t.usage.Prompt + t.usage.Completion
	case event.InputRequired:
		if row.Pending {
			t.broke = true
			return append(t.text(t.question(b)), t.finish("stop")...)
		}
	case event.Structured:
		return t.text(string(b.Result))
	case event.Attachment:
		return t.files(b.Attachments)
	case event.Error:
		t.error = &b
	case event.Done:
		switch {
		case t.error == nil:
			return t.finish("stop")
		case t.error.Code == event.ContentRefused:
			return t.finish("content_filter")
		}
		return t.Fail(*t.error)
	}
	return nil
}

// Fail implements dialect.Projection.
func (t *Telling) Fail(e event.Error) []any {
	t.error = &e
	return []any{failed(e), dialect.Raw("[DONE]")}
}

// Say is an answer that no row stands for.
func (t *Telling) Say(text string) []any { return append(t.text(text), t.finish("stop")...) }

// Completion is what was told, in one piece, with its status.
func (t *Telling) Completion() (status int, answer any) {
	if t.error != nil && t.reason == "" {
		return statusOf(t.error.Code), failed(*t.error)
	}
	return http.StatusOK, completion{ID: t.about.ID, Object: "chat.completion", Created: t.about.Created, Model: t.about.Model, Session: t.about.Session, Usage: t.usage,
		Choices: [1]whole{{Message: message{Role: "assistant", Content: t.content.String(), Reasoning: t.reasoning.String()}, FinishReason: t.reason}}}
}

func (t *Telling) chunk(d delta, reason *string) chunk {
	return chunk{ID: t.about.ID, Object: "chat.completion.chunk", Created: t.about.Created, Model: t.about.Model, Session: t.about.Session,
		Choices: []choice{{Delta: d, FinishReason: reason}}}
}

// text adds to the content. What is said after something else was done is a paragraph of its
// own.
func (t *Telling) text(s string) []any {
	if t.broke && t.content.Len() > 0 {
		s = "\n\n" + s
	}
	t.broke = false
	t.content.WriteString(s)
	return []any{t.chunk(delta{Content: &s}, nil)}
}

func (t *Telling) think(s string) []any {
	t.reasoning.WriteString(s)
	return []any{t.chunk(delta{Reasoning: s}, nil)}
}

// files are links behind the text, or behind the thoughts where the text is JSON.
func (t *Telling) files(list []event.File) []any {
	var links []string
	for _, f := range list {
		name := strings.NewReplacer("[", "(", "]", ")", "\n", " ", "\r", " ").Replace(f.Filename)
		links = append(links, fmt.Sprintf("[%s](%s)", name, door.Absolute(t.about.Base, f.DownloadURL)))
	}
	t.broke = true
	if t.about.Structured {
		return t.think("\n" + strings.Join(links, "\n"))
	}
	return t.text(strings.Join(links, "\n"))
}

func (t *Telling) finish(reason string) []any {
	t.reason = reason
	frames := []any{t.chunk(delta{}, &reason)}
	if t.about.Usage {
		last := t.chunk(delta{}, nil)
		last.Choices, last.Usage = []choice{}, &t.usage
		frames = append(frames, last)
	}
	return append(frames, dialect.Raw("[DONE]"))
}

// question is what a turn asks, in words, with what to answer.
func (t *Telling) question(ask event.InputRequired) string {
	until := ask.ExpiresAt.UTC().Format("15:04 MST")
	var b strings.Builder
	if ask.What == event.InputSecret {
		fmt.Fprintf(&b, "**The secret %s is needed.**", ask.KeyName)
		if ask.Reason != "" {
			fmt.Fprintf(&b, " %s", ask.Reason)
		}
		fmt.Fprintf(&b, "\n\nIts value never travels through a chat: until %s somebody who may can send it to %s . Then reply `continue`, or reply `deny` to go on without it.",
			until, door.Absolute(t.about.Base, ask.SecretURL))
		return b.String()
	}
	b.WriteString("**Approval needed:**\n")
	for _, op := range ask.Operations {
		fmt.Fprintf(&b, "\n- %s", op.Summary)
	}
	fmt.Fprintf(&b, "\n\nReply `allow` or `deny` until %s, or answer at %s .", until, door.Absolute(t.about.Base, ask.DecideURL))
	return b.String()
}
