package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// tell returns the text of a response of either protocol, and whether it is a refusal.
func (s *service) tell(t *testing.T, c apitest.Call, stream bool) (text string, refused bool) {
	t.Helper()
	var pieces []string
	if stream {
		c.Body = strings.TrimSuffix(c.Body, "}") + `,"stream":true}`
		pieces = s.Stream(t, c)
	} else {
		pieces = []string{s.Get(t, c).Text}
	}
	for _, piece := range pieces {
		type says struct{ Content, Refusal string }
		var p struct {
			Choices []struct{ Message, Delta says }
			Type    string
			Delta   json.RawMessage
			Output  []struct {
				Content []struct{ Text, Refusal string }
			}
		}
		if piece == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(piece), &p); err != nil {
			t.Fatalf("%s: %v", piece, err)
		}
		var delta, refusal string
		for _, choice := range p.Choices {
			delta, refusal = choice.Message.Content+choice.Delta.Content, choice.Message.Refusal+choice.Delta.Refusal
		}
		for _, out := range p.Output {
			delta, refusal = out.Content[0].Text, out.Content[0].Refusal
		}
		switch p.Type {
		case "response.output_text.delta":
			_ = json.Unmarshal(p.Delta, &delta)
		case "response.refusal.delta":
			_ = json.Unmarshal(p.Delta, &refusal)
		}
		text, refused = text+delta+refusal, refused || refusal != ""
	}
	return text, refused
}

// TestWordsBehindTheirQuestion checks that a chat without a name is found by the question in its
// conversation, in every format that clients store it in, and that a decision word without a code
// is answered with the code.
func TestWordsBehindTheirQuestion(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	for range 100 {
		s.Gate.Leave <- struct{}{}
	}
	const message, item = `{"role":"assistant","content":%s}`,
		`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"%s","%s":%%s,"annotations":[]}]}`
	texts := []struct{ path, kept string }{
		{apitest.CompletionsPath, message}, {apitest.ResponsesPath, message},
		{apitest.CompletionsPath, `{"role":"assistant","content":[{"type":"text","text":%s}]}`},
		{apitest.ResponsesPath, fmt.Sprintf(item, "output_text", "text")},
	}
	refusals := []struct{ path, kept string }{
		{apitest.CompletionsPath, `{"role":"assistant","content":null,"refusal":%s}`},
		{apitest.CompletionsPath, `{"role":"assistant","content":[{"type":"refusal","refusal":%s}]}`},
		{apitest.ResponsesPath, fmt.Sprintf(item, "refusal", "refusal")},
	}
	turns := 0
	for name, script := range map[string]string{
		"one call":      "@call gate {}\n@say the end",
		"words before":  "@text 2 deltas\n@call gate {\"page\":\"lunch\"}\n@say the end",
		"several calls": "@call gate {\"page\":\"a\"} gate {\"page\":\"b\"}\n@say the end",
		"a long input":  "@call gate {\"text\":\"" + strings.Repeat("<é&日> ", 3_000) + "\"}\n@say the end",
		"white space":   "@call gate {\"b\":\"x \\n\\n\\t y\\u00a0\\u2028z`*_\",  \"a\" : [ ]}\n@say the end",
		"JSON":          asksInJSON,
	} {
		for _, path := range []string{apitest.CompletionsPath, apitest.ResponsesPath} {
			for _, stream := range []bool{false, true} {
				for _, chat := range []string{"", fmt.Sprintf(`"user":"u%d",`, turns)} {
					allow := ""
					first := apitest.Call{Path: path, Body: fmt.Sprintf(`{"model":"demo",%s"messages":[{"role":"user","content":%s}]`, chat,
						apitest.Quote(script))}
					want, forms := "the end", texts
					if name == "JSON" {
						first.Body += `,"response_format":{"type":"json_object"}`
						want, forms = `{"n":1}`, refusals
					}
					if path == apitest.ResponsesPath {
						first.Body = strings.NewReplacer(`"messages"`, `"input"`, `"response_format":{"type":"json_object"}`,
							`"text":{"format":{"type":"json_object"}}`).Replace(first.Body)
					}
					first.Body += "}"
					asked, refused := s.tell(t, first, stream)
					if turns++; refused != (name == "JSON") {
						t.Errorf("%s: %s", name, asked)
					}
					for i, f := range forms { // a repeated response belongs to the same turn and has the same text
						kept := asked
						if i > 0 {
							kept = strings.ReplaceAll(asked, "\n\n", " \r\n")
						}
						say := func(text string) string {
							history := `{"role":"user","content":"x"},` + fmt.Sprintf(f.kept, apitest.Quote(kept)) +
								`,{"role":"user","content":` + apitest.Quote(text) + `}`
							field := map[string]string{apitest.CompletionsPath: "messages", apitest.ResponsesPath: "input"}[f.path]
							got, _ := s.tell(t, apitest.Call{Path: f.path, Body: fmt.Sprintf(`{"model":"demo",%s"%s":[%s]}`, chat, field, history)}, stream)
							return got
						}
						if i == 0 {
							allow = apitest.CodeReply(t, say("allow"), "allow")
						}
						if got := say(allow); got != want {
							t.Errorf("%s of %s as %s: %s", name, path, f.kept, got)
						}
					}
				}
			}
		}
	}
	if allowed, asked, now := s.questions(t); allowed != turns || asked != turns || now != turns {
		t.Errorf("%d of %d are allowed in %d turns, want %d", allowed, asked, now, turns)
	}
}

// TestWordsBehindASecretOfAnotherKey checks that a question for a secret is found for a key that
// may not answer it as well.
func TestWordsBehindASecretOfAnotherKey(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Declare(t, "API_TOKEN")
	chat := s.Issue(t, s.Workspace, apikey.Chat)
	asked := shown(s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Key: chat,
		Body: apitest.Completion("@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"to call\"}\n@say the end", `"user":"u"`)}))
	if !strings.Contains(asked, "scope secret") {
		t.Fatalf("%s", asked)
	}
	if text := apitest.CompletionText(t, s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
		Body: after(asked, "deny "+apitest.CodeReply(t, asked, "continue")[9:], `"user":"u"`)})); text != "the end" {
		t.Errorf("%q", text)
	}
}
