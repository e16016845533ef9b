package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/model"
)

// Asked is a request as a provider parses it.
type Asked struct {
	// Way is how a structured answer is requested: "strict" or "native" by the provider's own
	// means, "forced" by a tool that must be called, "offered" by one that may be, or "" not at
	// all.
	Way    string
	Schema json.RawMessage // schema of that answer, or of the first tool
	Text   string          // text of the last message
	Images []model.Image   // in the last message
	Files  []model.File    // likewise
	Inputs []string        // inputs of the calls in all messages
	// Reasoning are the items in all messages, those with a wrong signature as "invalid".
	Reasoning []string
}

func openAIAsked(body []byte) Asked {
	var r struct {
		ResponseFormat struct {
			JSONSchema struct {
				Schema json.RawMessage `json:"schema"`
				Strict bool            `json:"strict"`
			} `json:"json_schema"`
		} `json:"response_format"`
		ToolChoice struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tool_choice"`
		Tools []struct {
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Content   json.RawMessage `json:"content"`
			ToolCalls []struct {
				Function struct {
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(body, &r) // an invalid body requests nothing
	var a Asked
	for _, t := range r.Tools {
		if a.Schema = t.Function.Parameters; t.Function.Name == r.ToolChoice.Function.Name {
			a.Way = "forced"
		}
	}
	if f := r.ResponseFormat.JSONSchema; f.Schema != nil {
		a.Way, a.Schema = "native", f.Schema
		if f.Strict {
			a.Way = "strict"
		}
	}
	for _, m := range r.Messages {
		var parts []struct {
			Text     string `json:"text"`
			ImageURL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		a.Text, a.Images = "", nil
		if json.Unmarshal(m.Content, &a.Text) != nil {
			_ = json.Unmarshal(m.Content, &parts) // both may be absent
		}
		for _, p := range parts {
			a.Text += p.Text
			if mime, data, ok := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,"); ok {
				a.Images = append(a.Images, parsePicture(mime, data))
			}
		}
		for _, c := range m.ToolCalls {
			a.Inputs = append(a.Inputs, c.Function.Arguments)
		}
	}
	return a
}

func anthropicAsked(body []byte) Asked {
	var r struct {
		ToolChoice struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tool_choice"`
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Content []struct {
				Type      string          `json:"type"`
				Text      string          `json:"text"`
				Thinking  string          `json:"thinking"`
				Signature string          `json:"signature"`
				Input     json.RawMessage `json:"input"`
				Title     string          `json:"title"`
				Source    struct {
					MediaType string `json:"media_type"`
					Data      string `json:"data"`
				} `json:"source"`
			} `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(body, &r) // an invalid body requests nothing
	var a Asked
	for _, t := range r.Tools {
		a.Schema = t.InputSchema
		switch {
		case r.ToolChoice.Type == "tool" && r.ToolChoice.Name == t.Name:
			a.Way = "forced"
		case r.ToolChoice.Type == "auto":
			a.Way = "offered"
		}
	}
	for _, m := range r.Messages {
		a.Text, a.Images = "", nil
		for _, b := range m.Content {
			a.Text += b.Text
			switch b.Type {
			case "image":
				a.Images = append(a.Images, parsePicture(b.Source.MediaType, b.Source.Data))
			case "document":
				a.Files = append(a.Files, model.File{Name: b.Title, MIME: b.Source.MediaType, Data: parsePicture("", b.Source.Data).Data})
			case "tool_use":
				a.Inputs = append(a.Inputs, string(b.Input))
			case "thinking":
				a.Reasoning = append(a.Reasoning, validItem(b.Thinking, b.Signature))
			}
		}
	}
	return a
}

func validItem(text, signature string) string {
	if signature != signatureOf(text) {
		return "invalid"
	}
	return text
}

// parsePicture parses an image; an invalid one is empty.
func parsePicture(mime, data string) model.Image {
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return model.Image{MIME: mime}
	}
	return model.Image{MIME: mime, Data: decoded}
}
