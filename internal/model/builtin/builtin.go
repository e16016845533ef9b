// Package builtin is a model without a provider: offline, free and deterministic. It answers
// questions from the workspace's knowledge, which it reads with tools like any model, and from
// Parley's own documentation. It also obeys a small language of directives that exercises every
// feature of a stream. It stores no conversation: the same request gets the same reply in every
// process.
//
// Directives are read only from the user's last message. Tool results and the system text are
// quoted at most, never obeyed.
package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"iter"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// Name is the model's full name.
const Name = "builtin/guide"

// Guide is the model. It is safe for concurrent use.
type Guide struct {
	failed memory
}

// New returns a guide.
func New() *Guide { return &Guide{} }

// Name implements model.Model.
func (g *Guide) Name() string { return Name }

// Generate implements model.Model.
func (g *Guide) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		c := readConversation(req)
		r := c.chooseReply()
		for i := range r.calls {
			r.calls[i].ID = c.callID(i)
		}
		s := speaker{ctx: ctx, yield: yield, left: -1, stop: stopper{texts: req.Options.Stop}, summaries: req.Summaries,
			once: func(directive int) bool { return g.failed.isFirst(c.partKey(directive)) }}
		if req.MaxTokens > 0 {
			s.left = req.MaxTokens * runesPerToken
		}
		s.sendReply(r.withoutPrefix(req.Partial), inputTokens(req))
	}
}

// conversation is a request as the guide sees it.
type conversation struct {
	messages []model.Message
	question string // the user's last message, or the instructions of the skill in it
	skill    *skill // nil: the message has no skill
	images   []model.Image
	// attachments are the files of that message that have a text.
	attachments []attachment
	unread      []string // sentences about its files without a text
	step        int      // number of replies that the guide has already given in the turn
	results     []result
	offered     map[string]bool
	schema      json.RawMessage // schema of the answer; nil: any text is an answer
	forced      bool            // only a value of the schema is wanted now
	required    *model.Tool     // the tool for a reply that has to call one; nil: text is an answer
}

// result is the outcome of one tool call of this turn.
type result struct {
	call   event.ToolCall
	step   int // the reply that made the call
	output string
	failed bool
}

func readConversation(req model.Request) conversation {
	c := conversation{messages: withoutInputs(req.Messages), offered: make(map[string]bool, len(req.Tools))}
	for _, t := range req.Tools {
		if c.offered[t.Name] = true; t.Name == finalAnswer {
			c.schema = t.Schema
		}
	}
	last := len(req.Messages) - 1
	if req.MustCall {
		c.required = lastTool(req.Tools)
	}
	if req.Output != nil {
		c.schema, c.forced = req.Output.Schema, true
		last = beforeCorrections(c.messages)
	}
	asked := make(map[string]result)
	for i, m := range req.Messages {
		switch m.Role {
		case model.User:
			if i > last {
				continue
			}
			m = m.WithoutFiles()
			c.images, c.skill, c.step, c.results = m.Images, nil, 0, nil
			c.question, c.attachments, c.unread = attachmentsIn(m.Text)
			if s, ok := skillIn(m.Text); ok {
				c.question, c.skill = s.body, &s
			}
		case model.Assistant:
			for _, call := range m.Calls {
				asked[call.ID] = result{call: call, step: c.step}
			}
			c.step++
		case model.ToolRole:
			if r, ok := asked[m.CallID]; ok {
				r.output, r.failed = m.Text, m.Failed
				c.results = append(c.results, r)
			}
		}
	}
	return c
}

// chooseReply chooses the reply.
func (c conversation) chooseReply() reply {
	p, scripted := parseScript(c.question)
	if c.forced {
		return reply{parts: []part{splitWords(c.structuredValue(p, ""), 0)}}
	}
	r := reply{}
	switch {
	case scripted:
		if c.step < len(p.steps) {
			r = p.steps[c.step]
		}
	case c.skill != nil:
		r = c.runSkill(*c.skill)
	default:
		r = c.mentionUnread(c.describeImages(c.answerMessage()))
	}
	if c.schema != nil && len(r.calls) == 0 && r.stop == "" {
		return c.structuredReply(p, r)
	}
	if c.required != nil && len(r.calls) == 0 && r.stop == "" {
		return c.requiredCall(r)
	}
	return r
}

// callID returns the id of the i-th call of this reply. Like the reply, it is a function of the
// request.
func (c conversation) callID(i int) string {
	sum := sha256.Sum256([]byte(c.partKey(i)))
	return "call_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// partKey identifies the i-th part of the reply to this conversation.
func (c conversation) partKey(i int) string {
	h := sha256.New()
	write := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, m := range c.messages {
		write(string(m.Role))
		write(m.Text)
		write(m.CallID)
		for _, call := range m.Calls {
			write(call.ID)
		}
	}
	return string(binary.BigEndian.AppendUint64(h.Sum(nil), uint64(i)))
}
