package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestTextBesideASkill checks that a text beside a skill is its input. Beside an explicit input it
// is ignored, and the response reports that.
func TestTextBesideASkill(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID,
		skill.Upload{Document: "---\nname: free\ndescription: Takes anything.\n---\n@say done\n"}); err != nil {
		t.Fatal(err)
	}
	named := func() (label string) {
		if err := s.Pool.QueryRow(t.Context(), "SELECT label FROM messages WHERE role = 'user' ORDER BY id DESC LIMIT 1").Scan(
			&label); err != nil {
			t.Fatal(err)
		}
		return label
	}
	for i, c := range []struct{ text, more, want, ignored string }{
		{"Rome", "", "message", ""},
		{`{\"to\":\"Paris\"}`, "", "to", ""},
		{"Rome", `,"input":{"from":"Oslo"}`, "from", "messages"},
	} {
		ext := `"skill":"free"` + c.more
		for _, call := range []apitest.Call{
			{Path: apitest.UIChatPath, Body: fmt.Sprintf(
				`{"id":"c%d",%s,"messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"%s"}]}]}`, i, ext, c.text)},
			{Path: apitest.RunsPath, Body: fmt.Sprintf(
				`{"threadId":"t%d","runId":"r","forwardedProps":{%s},"messages":[{"id":"m","role":"user","content":"%s"}]}`, i, ext, c.text)},
		} {
			res := s.Do(t, call)
			if list, ok := apitest.Frames(t, res); !ok || res.Header.Get("X-Parley-Ignored") != c.ignored {
				t.Errorf("%s: %q %v", call.Body, res.Header.Get("X-Parley-Ignored"), list)
			}
			if got := named(); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", call.Body, got)
			}
		}
	}
}

// TestRejectedAttachmentsAreTold checks that every dialect reports attachments that were rejected.
func TestRejectedAttachmentsAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	const id = "0197a0d2-0000-7000-8000-00000000000f"
	const file = `"attachments":[{"file_id":"` + id + `"}]`
	if got := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@say So.", file)}); apitest.CompletionText(t,
		got) != "The agent does not have the file "+id+": The file does not exist.\n\nSo." {
		t.Errorf("%s", got.Text)
	}
	const data = `[{"file_id":"` + id + `","filename":"","code":"FILE_NOT_FOUND","reason":"The file does not exist."}]`
	ui := s.Stream(t, apitest.Call{Path: apitest.UIChatPath,
		Body: `{"id":"c",` + file + `,"messages":[{"role":"user","parts":[{"type":"text","text":"@say So."}]}]}`})
	if !strings.Contains(strings.Join(ui, "\n"), `{"type":"data-rejected-attachments","id":"rejected-attachments","data":`+data+`}`) {
		t.Errorf("%v", ui)
	}
	agui := s.Stream(t, apitest.Call{Path: apitest.RunsPath, Body: `{"threadId":"t","runId":"r","forwardedProps":{` + file +
		`},"messages":[{"role":"user","content":"@say So."}]}`})
	if !strings.Contains(strings.Join(agui, "\n"), `{"type":"CUSTOM","name":"rejected_attachments","value":`+data+`}`) {
		t.Errorf("%v", agui)
	}
	keyed := apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("@say So.", file), Header: []string{"Idempotency-Key", "k"}}
	if a, b := apitest.CompletionText(t, s.Get(t, keyed)), apitest.CompletionText(t, s.Get(t, keyed)); a != b || !strings.Contains(a, id) {
		t.Errorf("%q and again %q", a, b)
	}
}
