package modeltest

import (
	"iter"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// Heard is a complete reply.
type Heard struct {
	Text      string
	Reasoning []model.Reasoning
	Summary   string
	Calls     []event.ToolCall
	Usage     *model.Usage
	Stop      model.Stop
	RequestID string
}

// Read reads a reply to its end.
func Read(reply iter.Seq2[model.Chunk, error]) (Heard, error) {
	var h Heard
	for c, err := range reply {
		if err != nil {
			return h, err
		}
		h.Text += c.Text
		h.Summary += c.Summary
		if c.Reasoning != nil {
			h.Reasoning = append(h.Reasoning, *c.Reasoning)
		}
		if c.Call != nil {
			h.Calls = append(h.Calls, *c.Call)
		}
		if c.Stop != "" {
			h.Usage, h.Stop, h.RequestID = c.Usage, c.Stop, c.RequestID
		}
	}
	return h, nil
}
