package modeltest

import (
	"cmp"
	"encoding/json"
	"net/http/httptest"
)

type object = map[string]any

// OpenAI starts a server of the Chat Completions API. Its base URL is URL+"/v1".
func OpenAI(s *Script) *httptest.Server {
	return serveScript(s, []string{"/v1/chat/completions"}, openAIFrames)
}

func openAIFrames(req Request, reply Reply) []string {
	var asked struct {
		Model         string `json:"model"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(req.Body, &asked) // an invalid body requests nothing
	chunk := func(choices []object, more object) string {
		c := object{
			"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1_700_000_000,
			"model": asked.Model, "choices": choices,
		}
		for k, v := range more {
			c[k] = v
		}
		return Data(c)
	}
	delta := func(d object, finish any) string {
		return chunk([]object{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}

	out := []string{delta(object{"role": "assistant", "content": "", "refusal": nil}, nil)}
	for _, text := range reply.Text {
		out = append(out, delta(object{"content": text}, nil))
	}
	out = append(out, openAICalls(reply.Calls, delta)...)
	implied := "stop"
	if len(reply.Calls) > 0 {
		implied = "tool_calls"
	}
	out = append(out, delta(object{}, cmp.Or(reply.Stop, implied)))
	if u := reply.Usage; u != nil && asked.StreamOptions.IncludeUsage {
		out = append(out, chunk([]object{}, object{"usage": object{
			"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens,
			"total_tokens":          u.InputTokens + u.OutputTokens,
			"prompt_tokens_details": object{"cached_tokens": u.CachedTokens},
		}}))
	}
	return append(out, "data: [DONE]\n\n")
}

// openAICalls interleaves parallel calls, which the format allows: only the index shows which call
// a piece belongs to.
func openAICalls(calls []Call, delta func(object, any) string) []string {
	var out []string
	left := make([][]string, len(calls))
	for i, c := range calls {
		left[i] = splitPieces(c.Input)
		first := object{"index": i, "type": "function", "function": object{"name": c.Tool, "arguments": ""}}
		if c.ID != "" {
			first["id"] = c.ID
		}
		out = append(out, delta(object{"tool_calls": []object{first}}, nil))
	}
	for more := true; more; {
		more = false
		for i := range left {
			if len(left[i]) == 0 {
				continue
			}
			out = append(out, delta(object{"tool_calls": []object{
				{"index": i, "function": object{"arguments": left[i][0]}},
			}}, nil))
			left[i], more = left[i][1:], true
		}
	}
	return out
}
