package agui

import (
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/dialect"
)

// without is a client's messages without those of a turn, whose calls are named; ok is false
// where it has none of them. Who is told a turn from its beginning must not have some of it:
// clients append to what they have.
func without(raw json.RawMessage, turn string, calls map[string]bool) (rest []json.RawMessage, ok bool) {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // it was read before
	rest = make([]json.RawMessage, 0, len(list))
	for _, m := range list {
		kept := keep(m, turn, calls)
		ok = ok || len(kept) != len(m)
		if kept != nil {
			rest = append(rest, kept)
		}
	}
	return rest, ok
}

// keep is a message without what is a turn's, nil where all of it is.
func keep(raw json.RawMessage, turn string, calls map[string]bool) json.RawMessage {
	var m struct {
		ID         string            `json:"id"`
		Role       string            `json:"role"`
		Content    any               `json:"content"`
		ToolCallID string            `json:"toolCallId"`
		ToolCalls  []json.RawMessage `json:"toolCalls"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	if m.Role == "assistant" && strings.HasPrefix(m.ID, turn+"-") || m.Role == "tool" && calls[m.ToolCallID] {
		return nil
	}
	kept := make([]json.RawMessage, 0, len(m.ToolCalls))
	for _, c := range m.ToolCalls {
		var call struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(c, &call) != nil || !calls[call.ID] {
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

// snapshot is what a run begins with that tells a turn of which its client has a part.
func (s *server) snapshot(r *dialect.Request, in input, rd dialect.Reading) ([]json.RawMessage, error) {
	if in.messages == nil {
		return nil, nil
	}
	calls, err := s.Calls(r.Context(), r.Caller, rd)
	if err != nil {
		return nil, err
	}
	rest, ok := without(in.messages, rd.Turn.String(), calls)
	if !ok {
		return nil, nil
	}
	return rest, nil
}
