package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"

	"github.com/parley-server/parley/internal/model"
)

// placedItem is an item of reasoning with its place in the reply: providers check the order.
type placedItem struct {
	AfterText bool            `json:"after_text,omitempty"`
	Calls     int             `json:"calls,omitempty"` // calls before it
	Item      json.RawMessage `json:"item"`
}

// NewReasoning returns an item of reasoning that followed text, or not, and a number of calls.
func (s Service) NewReasoning(afterText bool, calls int, item any) *model.Reasoning {
	raw, err := json.Marshal(item)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(placedItem{afterText, calls, raw})
	if err != nil {
		return nil
	}
	return &model.Reasoning{Provider: s.FullName(), Data: data}
}

// ReasoningAt returns the items at one place of a reply. Items of other models are left out: only
// the model that wrote them can read them.
func (s Service) ReasoningAt(msg model.Message, afterText bool, calls int) (items []json.RawMessage) {
	for _, r := range msg.Reasoning {
		var p placedItem
		if r.Provider != s.FullName() || json.Unmarshal(r.Data, &p) != nil {
			continue
		}
		if p.Calls == calls && (calls > 0 || p.AfterText == afterText) {
			items = append(items, p.Item)
		}
	}
	return items
}

// HasReasoning reports whether a message has reasoning of this model.
func (s Service) HasReasoning(msg model.Message) bool {
	for _, r := range msg.Reasoning {
		if r.Provider == s.FullName() {
			return true
		}
	}
	return false
}

// ReplyOrPlain is the reply to a request, or to the same request without reasoning and files if the
// provider does not accept the first one: reasoning becomes invalid with the account or key that it
// belongs to, and a file can be broken or protected.
func (s Service) ReplyOrPlain(req model.Request, reply func(model.Request) iter.Seq2[model.Chunk, error]) iter.Seq2[model.Chunk, error] {
	plain, extras := req, false
	plain.Messages = make([]model.Message, len(req.Messages))
	for i, msg := range req.Messages {
		extras = extras || s.HasReasoning(msg) || len(msg.Files) > 0
		msg.Reasoning = nil
		plain.Messages[i] = msg.WithoutFiles()
	}
	if !extras {
		return reply(req)
	}
	return FirstAccepted(reply(req), reply(plain))
}

// DataURL returns data as an address.
func DataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// FirstAccepted is the first of replies that the provider accepts; each one makes its request in
// another way.
func FirstAccepted(replies ...iter.Seq2[model.Chunk, error]) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for i, reply := range replies {
			begun, rejected := false, false
			for c, err := range reply {
				if rejected = !begun && i < len(replies)-1 && errors.Is(err, errNotAccepted); rejected {
					break
				}
				begun = true
				if !yield(c, err) {
					return
				}
			}
			if !rejected {
				return
			}
		}
	}
}
