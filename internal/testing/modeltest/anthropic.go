package modeltest

import (
	"cmp"
	"encoding/json"
	"net/http/httptest"

	"github.com/parley-server/parley/internal/model"
)

// Anthropic starts a server of the Messages API. Its base URL is URL.
func Anthropic(s *Script) *httptest.Server {
	return serveScript(s, []string{"/v1/messages"}, anthropicFrames)
}

func anthropicFrames(req Request, reply Reply) []string {
	var asked struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(req.Body, &asked) // an invalid body requests nothing
	frame := func(name string, members object) string {
		members["type"] = name
		return Named(name, members)
	}

	message := object{
		"id": "msg_fake", "type": "message", "role": "assistant", "model": asked.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
	}
	end := object{"delta": object{"stop_reason": cmp.Or(reply.Stop, impliedStop(reply)), "stop_sequence": nil}}
	if u := reply.Usage; u != nil {
		message["usage"] = startUsage(*u)
		end["usage"] = object{"output_tokens": u.OutputTokens}
	}
	out := []string{frame("message_start", object{"message": message}), frame("ping", object{})}

	block := 0
	add := func(start object, deltas []object) {
		out = append(out, frame("content_block_start", object{"index": block, "content_block": start}))
		for _, d := range deltas {
			out = append(out, frame("content_block_delta", object{"index": block, "delta": d}))
		}
		out = append(out, frame("content_block_stop", object{"index": block}))
		block++
	}
	for _, text := range reply.Reasoning {
		add(object{"type": "thinking", "thinking": "", "signature": ""}, []object{
			{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": signatureOf(text)}})
	}
	if len(reply.Text) > 0 {
		var deltas []object
		for _, text := range reply.Text {
			deltas = append(deltas, object{"type": "text_delta", "text": text})
		}
		add(object{"type": "text", "text": ""}, deltas)
	}
	for _, c := range reply.Calls {
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range splitPieces(c.Input) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		add(object{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": object{}}, deltas)
	}
	return append(out, frame("message_delta", end), frame("message_stop", object{}))
}

// signatureOf returns the signature of a text. A wrong one makes a request invalid.
func signatureOf(text string) string { return "signature of " + text }

// startUsage returns the usage of message_start, in which cached input is counted separately.
func startUsage(u model.Usage) object {
	return object{
		"input_tokens": u.InputTokens - u.CachedTokens - u.CacheWriteTokens, "cache_read_input_tokens": u.CachedTokens,
		"cache_creation_input_tokens": u.CacheWriteTokens, "output_tokens": 1,
	}
}

func impliedStop(reply Reply) string {
	if len(reply.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}
