package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/turn"
)

// said is a message of the list.
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

// TestTheAnswerIsTheLastStep checks that the stream separates the steps of an answer, and that the
// answer is the last step with text.
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
			t.Errorf("%q: streamed %q, listed %q with the output %q, want %q and %q", script, text, *list[1].Content, *list[1].Output,
				want.content, want.output)
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

// TestRejectedAttachmentsAreTold checks that a caller learns which attachments are not used: in the
// stream right after open, in the response and in the list, each once.
func TestRejectedAttachmentsAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const id = "0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"
	attachments := fmt.Sprintf(`"attachments":[{"file_id":%q},{"file_id":%q}]`, id, id)
	const want = `[{"file_id":"` + id + `","filename":"","code":"FILE_NOT_FOUND","reason":"The file does not exist."}]`
	frames := s.say(t, "@say x", attachments).rest()
	if frames[1].event != "attachment_rejected" || frames[1].data != `{"v":1,"attachments":`+want+`}` {
		t.Errorf("%v", frames)
	}
	if r := s.get(t, call{path: "sessions/" + sessionOf(t, frames[0]) + "/messages"}); strings.Count(r.text,
		`"rejected_attachments":`+want) != 1 {
		t.Errorf("%s", r.text)
	}
	if r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, "@say x", attachments,
		`"stream":false`)}); !strings.Contains(r.text, `"rejected_attachments":`+want) {
		t.Errorf("%s", r.text)
	}
}

// TestACutAnswerIsTold checks that an answer that the provider cut at its token limit is marked as
// truncated.
func TestACutAnswerIsTold(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for script, cut := range map[string]bool{"@say x\n@length": true, "@say x": false} {
		frames := s.say(t, script).rest()
		usage := frames[len(frames)-2].data
		if got := strings.Contains(usage, `"finish_reason":"length","truncated":true`); got != cut {
			t.Errorf("%q: %s", script, usage)
		}
		r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, script, `"stream":false`)})
		if got := strings.Contains(r.text, `"truncated":true`); got != cut {
			t.Errorf("%q: %s", script, r.text)
		}
	}
}

// TestAddressesInEventsAreAbsolute checks that with a public address every URL in an event, a
// blocking response and a callback is absolute.
func TestAddressesInEventsAreAbsolute(t *testing.T) {
	t.Parallel()
	const base = "https://parley.example"
	s := startTurns(t, nil, func(c *turn.Config) {
		asking(time.Hour)(c)
		c.Base = base + "/"
	})
	want := `"decide_url":"` + base + `/api/workspaces/` + s.Workspace.ID.String() + `/approvals/`
	ask := s.say(t, "@call gate {}").until("input_required")
	if got := ask[len(ask)-1].data; !strings.Contains(got, want) {
		t.Errorf("%s lacks %s", got, want)
	}
	if r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, "@call gate {}", `"stream":false`)}); !strings.Contains(
		r.text, want) {
		t.Errorf("%s lacks %s", r.text, want)
	}
}
