package agui

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/strictjson"
)

// encodeSnapshot begins a run whose client has some of its messages: it contains the client's
// messages without them. Clients append to their messages, and would have them twice.
func (t *Encoder) encodeSnapshot() []any {
	var list []json.RawMessage
	_ = json.Unmarshal(t.about.Messages, &list) // it was parsed before
	rest := make([]json.RawMessage, 0, len(list))
	same := true
	for _, m := range list {
		kept := t.withoutOwnParts(m)
		same = same && len(kept) == len(m)
		if kept != nil {
			rest = append(rest, kept)
		}
	}
	if same {
		return nil
	}
	return []any{frame{Type: "MESSAGES_SNAPSHOT", Messages: &rest}}
}

// withoutOwnParts returns a message without the parts that the run sends, nil if nothing is left.
func (t *Encoder) withoutOwnParts(raw json.RawMessage) json.RawMessage {
	var m struct {
		ID         string            `json:"id"`
		Role       string            `json:"role"`
		Content    any               `json:"content"`
		ToolCallID string            `json:"toolCallId"`
		ToolCalls  []json.RawMessage `json:"toolCalls"`
	}
	if strictjson.Unmarshal(raw, &m) != nil {
		return raw
	}
	if m.Role == "assistant" && t.willSend(m.ID) || m.Role == "tool" && t.about.Calls[m.ToolCallID] && !t.results[m.ToolCallID] {
		return nil
	}
	kept := make([]json.RawMessage, 0, len(m.ToolCalls))
	for _, c := range m.ToolCalls {
		var call struct {
			ID string `json:"id"`
		}
		if strictjson.Unmarshal(c, &call) != nil || !t.about.Calls[call.ID] || t.tools[call.ID] {
			kept = append(kept, c)
		}
	}
	switch {
	case len(kept) == len(m.ToolCalls):
		return raw
	case len(kept) == 0 && (m.Content == nil || m.Content == ""):
		return nil
	}
	var whole map[string]json.RawMessage
	_ = json.Unmarshal(raw, &whole) // it is an object
	whole["toolCalls"], _ = json.Marshal(kept)
	if len(kept) == 0 {
		delete(whole, "toolCalls")
	}
	changed, _ := json.Marshal(whole)
	return changed
}

// willSend reports whether the run will send a text message with that id.
func (t *Encoder) willSend(id string) bool {
	told := t.messages
	for rd := &t.reading; rd != nil; rd = rd.Then {
		if n, ok := strings.CutPrefix(id, rd.Turn.String()+"-"); ok {
			i, err := strconv.Atoi(n)
			return err == nil && i > told
		}
		told = 0 // frames of the turn after it
	}
	return false
}
