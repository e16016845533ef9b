package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/apitest"
)

const textPath = "/openai/v1/completions"

// textCompletion is a completion of a text, or a piece of one.
type textCompletion struct {
	ID, Object, Model string
	Choices           []struct {
		Text   string
		Finish *string `json:"finish_reason"`
	}
	Usage *struct {
		Total int `json:"total_tokens"`
	}
}

// TestTextCompletions checks the older API: one prompt, streamed or not, with parameters and usage,
// and what it rejects or ignores.
func TestTextCompletions(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for _, prompt := range []string{`"count to 3"`, `["count to 3"]`} {
		r := s.Get(t, apitest.Call{Path: textPath, Body: `{"model":"demo","prompt":` + prompt +
			`,"stop":" 3","echo":false,"tools":[],"messages":[]}`})
		var whole textCompletion
		if err := json.Unmarshal([]byte(r.Text), &whole); err != nil || r.Status != 200 || !strings.HasPrefix(whole.ID, "cmpl-") ||
			whole.Object != "text_completion" ||
			whole.Choices[0].Text != "1 2" || *whole.Choices[0].Finish != "stop" || whole.Usage.Total == 0 {
			t.Errorf("%s: %d %s: %v", prompt, r.Status, r.Text, err)
		}
		if got := r.Header.Get("X-Parley-Ignored"); got != "echo, messages, tools" {
			t.Errorf("ignored %q", got)
		}
	}
	list := s.Stream(t, apitest.Call{Path: "/v1/completions",
		Body: `{"model":"demo","prompt":"@say Let me.\n@call touch {}\n@say So.","stream":true,"stream_options":{"include_usage":true}}`})
	text, finish, total := "", "", 0
	for _, data := range list[:len(list)-1] {
		var piece textCompletion
		if err := json.Unmarshal([]byte(data), &piece); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, c := range piece.Choices {
			if text += c.Text; c.Finish != nil {
				finish += *c.Finish
			}
		}
		if piece.Usage != nil {
			total = piece.Usage.Total
		}
	}
	if text != "Let me.\n\nSo." || finish != "stop" || total == 0 || list[len(list)-1] != "[DONE]" {
		t.Errorf("%v", list)
	}
	for name, body := range map[string]string{"none": `{"model":"demo"}`, "two": `{"model":"demo","prompt":["a","b"]}`,
		"tokens": `{"model":"demo","prompt":[1,2]}`, "empty": `{"model":"demo","prompt":""}`,
		"long": `{"model":"demo","prompt":"` + strings.Repeat("x", 200_001) + `"}`} {
		r := s.Get(t, apitest.Call{Path: textPath, Body: body})
		if e, _ := r.Body["error"].(map[string]any); r.Status != 400 || e["param"] != "prompt" {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	if r := s.Get(t, apitest.Call{Path: textPath, Body: `{"model":"demo","prompt":"@error model_error"}`}); r.Status != 422 {
		t.Errorf("%d %s", r.Status, r.Text)
	}
}
