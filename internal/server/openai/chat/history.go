package chat

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server/request"
)

// The limits of the messages that a new session is given.
const (
	maxHistory      = 400
	maxHistoryBytes = 1 << 20
)

// parseHistory converts the messages before the newest one, as context for a new session. It leaves
// out what no model accepts: calls without a result, and results without a call.
func (in *Incoming) parseHistory(list []request.ChatMessage) []event.SuppliedMessage {
	var past []event.SuppliedMessage
	for i, m := range list {
		switch {
		case isSystem(m):
		case m.Role == "user":
			past = append(past, event.SuppliedMessage{Role: "user", Text: contentText(m.Content)})
			in.noteParts(i, m.Content)
		case isAssistant(m):
			past = appendAssistant(past, m)
		case m.Role == "tool":
			past = append(past, event.SuppliedMessage{Role: "tool", Text: contentText(m.Content), CallID: m.CallID})
		case m.Type == "function_call_output":
			past = append(past, event.SuppliedMessage{Role: "tool", Text: contentText(m.Output), CallID: m.ItemCall})
		default:
			in.Ignored = append(in.Ignored, fmt.Sprintf("messages/%d", i))
		}
	}
	whole, dropped := pairCalls(past)
	if dropped {
		in.Ignored = append(in.Ignored, "unpaired tool calls")
	}
	return in.limitHistory(whole)
}

// noteParts lists the parts of an earlier message that have no text.
func (in *Incoming) noteParts(at int, raw json.RawMessage) {
	var parts []struct{ Type, Text string }
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		return
	}
	for i, p := range parts {
		if p.Text == "" {
			in.Ignored = append(in.Ignored, fmt.Sprintf("messages/%d/content/%d", at, i))
		}
	}
}

// appendAssistant appends a message of the assistant with its calls. Responses have one item for
// each call, which belong to one message.
func appendAssistant(past []event.SuppliedMessage, m request.ChatMessage) []event.SuppliedMessage {
	next := event.SuppliedMessage{Role: "assistant", Text: strings.TrimSpace(contentText(m.Content) + contentText(m.Refusal))}
	if m.Type == "function_call" {
		next.Calls = []event.ToolCall{{ID: m.ItemCall, Tool: m.Name, Input: json.RawMessage(m.Arguments)}}
	}
	var calls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	}
	if json.Unmarshal(m.Calls, &calls) == nil {
		for _, c := range calls {
			next.Calls = append(next.Calls, event.ToolCall{ID: c.ID, Tool: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)})
		}
	}
	if n := len(past); n > 0 && past[n-1].Role == "assistant" {
		before := &past[n-1]
		before.Text = strings.TrimSpace(before.Text + "\n\n" + next.Text)
		before.Calls = append(before.Calls, next.Calls...)
		return past
	}
	return append(past, next)
}

// pairCalls leaves the calls that have a result right after their message, and the results of these
// calls. An id that an earlier call has is replaced: small servers count from zero in every answer,
// and models reject a repeated id.
func pairCalls(past []event.SuppliedMessage) (whole []event.SuppliedMessage, dropped bool) {
	taken := map[string]bool{"": true}
	for i := 0; i < len(past); i++ {
		m := past[i]
		end := i + 1
		for end < len(past) && past[end].Role == "tool" {
			end++
		}
		results := past[i+1 : end]
		if m.Role == "tool" {
			results = past[i:end]
		}
		calls, answers := matchResults(m.Calls, results)
		dropped = dropped || len(m.Calls)+len(results) != 2*len(calls)
		for k := range calls {
			if taken[calls[k].ID] {
				calls[k].ID = "call_" + rand.Text()
			}
			taken[calls[k].ID], answers[k].CallID = true, calls[k].ID
		}
		m.Calls = calls
		if m.Role != "tool" && (m.Text != "" || len(m.Calls) > 0) {
			whole = append(append(whole, m), answers...)
		}
		i = end - 1
	}
	return whole, dropped
}

// matchResults returns the calls with a result, and their results in the same order. Calls with one
// id have their results in the order of the calls.
func matchResults(calls []event.ToolCall, results []event.SuppliedMessage) (answered []event.ToolCall, answers []event.SuppliedMessage) {
	byCall := make(map[string][]event.SuppliedMessage)
	for _, r := range results {
		byCall[r.CallID] = append(byCall[r.CallID], r)
	}
	for _, c := range calls {
		if list := byCall[c.ID]; len(list) > 0 {
			answered, answers = append(answered, c), append(answers, list[0])
			byCall[c.ID] = list[1:]
		}
	}
	return answered, answers
}

// limitHistory leaves the newest messages within the limits.
func (in *Incoming) limitHistory(past []event.SuppliedMessage) []event.SuppliedMessage {
	begin, size := len(past), 0
	for begin > 0 && len(past)-begin < maxHistory {
		m := past[begin-1]
		size += len(m.Text) + len(m.CallID)
		for _, c := range m.Calls {
			size += len(c.ID) + len(c.Tool) + len(c.Input)
		}
		if size > maxHistoryBytes {
			break
		}
		begin--
	}
	for begin > 0 && begin < len(past) && past[begin].Role == "tool" { // its call is not in the rest
		begin++
	}
	if begin > 0 {
		in.Ignored = append(in.Ignored, fmt.Sprintf("the oldest %d messages", begin))
	}
	return past[begin:]
}
