package modeltest

import (
	"encoding/json"
	"net/http/httptest"
	"strings"

	"github.com/parley-server/parley/internal/model"
)

// Responses starts a server of OpenAI's Responses API. Its base URL is URL+"/v1".
func Responses(s *Script) *httptest.Server {
	return serveScript(s, []string{"/v1/responses"}, responsesFrames)
}

func responsesFrames(_ Request, reply Reply) []string {
	var out []string
	frame := func(kind string, members object) {
		members["type"] = kind
		out = append(out, Named(kind, members))
	}
	item := func(index int, begin, end object, deltas func()) {
		frame("response.output_item.added", object{"output_index": index, "item": begin})
		deltas()
		frame("response.output_item.done", object{"output_index": index, "item": end})
	}
	frame("response.created", object{"response": object{"id": "resp_fake", "status": "in_progress"}})
	n := 0
	for _, text := range reply.Reasoning {
		begin := object{"type": "reasoning", "id": "rs_fake", "summary": []any{}}
		item(n, begin, object{"type": "reasoning", "id": "rs_fake", "summary": []any{}, "encrypted_content": signatureOf(text)}, func() {})
		n++
	}
	if len(reply.Text) > 0 {
		message := object{"type": "message", "id": "msg_fake", "role": "assistant", "content": []any{}}
		item(n, message, message, func() {
			for _, text := range reply.Text {
				frame("response.output_text.delta", object{"output_index": n, "content_index": 0, "item_id": "msg_fake", "delta": text})
			}
		})
		n++
	}
	for _, c := range reply.Calls {
		call := func(arguments string) object {
			return object{"type": "function_call", "id": "fc_fake", "call_id": c.ID, "name": c.Tool, "arguments": arguments}
		}
		item(n, call(""), call(c.Input), func() {
			for _, piece := range splitPieces(c.Input) {
				frame("response.function_call_arguments.delta", object{"output_index": n, "item_id": "fc_fake", "delta": piece})
			}
		})
		n++
	}
	frame(responseEnd(reply))
	return out
}

// responseEnd returns the last event. Stop is the reason of an incomplete response.
func responseEnd(reply Reply) (kind string, members object) {
	end := object{"id": "resp_fake", "status": "completed"}
	if u := reply.Usage; u != nil {
		end["usage"] = object{"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "total_tokens": u.InputTokens + u.OutputTokens,
			"input_tokens_details": object{"cached_tokens": u.CachedTokens}}
	}
	if reply.Stop != "" {
		end["status"], end["incomplete_details"] = "incomplete", object{"reason": reply.Stop}
		return "response.incomplete", object{"response": end}
	}
	return "response.completed", object{"response": end}
}

func responsesAsked(body []byte) Asked {
	var r struct {
		Text struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
				Strict bool            `json:"strict"`
			} `json:"format"`
		} `json:"text"`
		ToolChoice json.RawMessage `json:"tool_choice"`
		Tools      []struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"tools"`
		Input []struct {
			Type      string          `json:"type"`
			Content   json.RawMessage `json:"content"`
			Arguments string          `json:"arguments"`
			Encrypted string          `json:"encrypted_content"`
		} `json:"input"`
	}
	_ = json.Unmarshal(body, &r) // an invalid body requests nothing
	var a Asked
	var forced struct{ Name string }
	_ = json.Unmarshal(r.ToolChoice, &forced) // a word names no function
	for _, t := range r.Tools {
		if a.Schema = t.Parameters; t.Name == forced.Name {
			a.Way = "forced"
		}
	}
	if f := r.Text.Format; f.Schema != nil {
		a.Way, a.Schema = "native", f.Schema
		if f.Strict {
			a.Way = "strict"
		}
	}
	for _, item := range r.Input {
		switch item.Type {
		case "message":
			a.addParts(item.Content)
		case "function_call":
			a.Inputs = append(a.Inputs, item.Arguments)
		case "reasoning":
			text := strings.TrimPrefix(item.Encrypted, signatureOf(""))
			a.Reasoning = append(a.Reasoning, validItem(text, item.Encrypted))
		}
	}
	return a
}

// addParts parses the content of a message.
func (a *Asked) addParts(content json.RawMessage) {
	var parts []struct {
		Text     string `json:"text"`
		ImageURL string `json:"image_url"`
		Filename string `json:"filename"`
		FileData string `json:"file_data"`
	}
	a.Text, a.Images = "", nil
	if json.Unmarshal(content, &a.Text) != nil {
		_ = json.Unmarshal(content, &parts) // both may be absent
	}
	for _, p := range parts {
		a.Text += p.Text
		if mime, data, ok := strings.Cut(strings.TrimPrefix(p.ImageURL, "data:"), ";base64,"); ok {
			a.Images = append(a.Images, parsePicture(mime, data))
		}
		if mime, data, ok := strings.Cut(strings.TrimPrefix(p.FileData, "data:"), ";base64,"); ok {
			a.Files = append(a.Files, model.File{Name: p.Filename, MIME: mime, Data: parsePicture("", data).Data})
		}
	}
}
