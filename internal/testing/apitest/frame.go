package apitest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

// FrameTypes returns the types of frames, with equal neighbors as one.
func FrameTypes(t *testing.T, list []string) string {
	t.Helper()
	var names []string
	for _, data := range list {
		f := struct{ Type string }{data}
		if data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &f); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
		}
		if n := len(names); n == 0 || names[n-1] != f.Type {
			names = append(names, f.Type)
		}
	}
	return strings.Join(names, " ")
}

// FrameField returns the last value of a member in frames.
func FrameField(list []string, name string) (value string) {
	for _, data := range list {
		var f map[string]any
		_ = json.Unmarshal([]byte(data), &f)
		if v, ok := f[name].(string); ok {
			value = v
		}
	}
	return value
}

// FrameSession returns the session of a stream of the AI SDK.
func FrameSession(t *testing.T, list []string) string {
	t.Helper()
	var f struct {
		Metadata map[string]string `json:"messageMetadata"`
	}
	if err := json.Unmarshal([]byte(list[0]), &f); err != nil || f.Metadata["session_id"] == "" {
		t.Fatalf("%s: %v", list[0], err)
	}
	return f.Metadata["session_id"]
}

// FrameInterrupt returns the interrupt that a run ended with.
func FrameInterrupt(t *testing.T, list []string) (id, reason string) {
	t.Helper()
	var f struct {
		Outcome struct {
			Type       string
			Interrupts []struct {
				ID, Reason string
				ExpiresAt  time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(list[len(list)-1]), &f); err != nil || f.Outcome.Type != "interrupt" ||
		len(f.Outcome.Interrupts) != 1 || f.Outcome.Interrupts[0].ExpiresAt.IsZero() {
		t.Fatalf("%v: %v", list, err)
	}
	return f.Outcome.Interrupts[0].ID, f.Outcome.Interrupts[0].Reason
}

// FrameRefusal returns the error of a run that was rejected.
func FrameRefusal(t *testing.T, list []string) (code, message string) {
	t.Helper()
	if got := FrameTypes(t, list); got != "RUN_STARTED RUN_ERROR" {
		t.Fatalf("%v", list)
	}
	return FrameField(list, "code"), FrameField(list, "message")
}

// CodeReply returns the reply that a question shows, such as `allow 7QK2MX`.
func CodeReply(t *testing.T, question, verb string) string {
	t.Helper()
	found := regexp.MustCompile("`(" + verb + " [0-9A-Z]{6})`").FindStringSubmatch(question)
	if found == nil {
		t.Fatalf("the question has no code to %s: %s", verb, question)
	}
	return found[1]
}

// CompletionText returns the content of a completion that is not streamed.
func CompletionText(t *testing.T, r Reply) string {
	t.Helper()
	var c struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if err := json.Unmarshal([]byte(r.Text), &c); err != nil || r.Status != 200 || len(c.Choices) != 1 {
		t.Fatalf("%d %s: %v", r.Status, r.Text, err)
	}
	return c.Choices[0].Message.Content
}
