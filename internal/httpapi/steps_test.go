package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

// said is a message as the list shows it.
type said struct {
	Role    string
	Status  string
	Content *string
	Output  *string
}

func (s *service) said(t testing.TB, session string) (list []said) {
	t.Helper()
	r := s.get(t, call{path: "sessions/" + session + "/messages"})
	if err := json.Unmarshal(r.Data, &list); err != nil {
		t.Fatalf("%s: %v", r.text, err)
	}
	return list
}

// The steps of an answer are separated in the stream; the answer is the last one that has text.
func TestTheAnswerIsTheLastStep(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for script, want := range map[string]struct{ content, output string }{
		"@say Let me look.\n@call look {}\n@say One more.\n@call look {}\n@say It is 5.": {"Let me look.\n\nOne more.\n\nIt is 5.", "It is 5."},
		"@say Let me look. é\n@call look {}":                                             {"Let me look. é", "Let me look. é"},
		"@call look {}\n@say It is 5.":                                                   {"It is 5.", "It is 5."},
		"@say Let me look.\n@call look {}\n@say It is\n@error model_error":               {"Let me look.\n\nIt is", "It is"},
	} {
		frames := s.say(t, script).rest()
		text := ""
		for _, f := range frames {
			var delta struct{ Text string }
			if f.event == "text" && json.Unmarshal([]byte(f.data), &delta) == nil {
				text += delta.Text
			}
		}
		list := s.said(t, sessionOf(t, frames[0]))
		if text != want.content || *list[1].Content != want.content || *list[1].Output != want.output || list[0].Output != nil {
			t.Errorf("%q: streamed %q, listed %q with the output %q, want %q and %q", script, text, *list[1].Content, *list[1].Output, want.content, want.output)
		}
		var blocked outcome
		r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, script, `"stream":false`)})
		if err := json.Unmarshal([]byte(r.text), &blocked); err != nil {
			t.Fatalf("%s: %v", r.text, err)
		}
		if blocked.Success && *blocked.Output != want.output {
			t.Errorf("%q: the answer is %q, want %q", script, *blocked.Output, want.output)
		}
	}
}
