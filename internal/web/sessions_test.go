package web

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/session"
)

// TestSessionStatusNamesTheEnd renders the status of sessions by the end of their newest turn.
func TestSessionStatusNamesTheEnd(t *testing.T) {
	t.Parallel()
	pages, err := parsePages()
	if err != nil {
		t.Fatal(err)
	}
	for want, sum := range map[string]session.Summary{
		"Completed":   {Status: session.Done},
		"Canceled":    {Status: session.Done, Error: new("canceled")},
		"Failed":      {Status: session.Done, Error: new("model_error")},
		"Running":     {Status: session.Thinking},
		"Waiting":     {Status: session.Thinking, Pending: &session.Pending{}},
		"Not started": {Status: session.NotStarted},
	} {
		var html bytes.Buffer
		if err := pages["sessions"].ExecuteTemplate(&html, "sessionstatus", sum); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(html.String(), ">"+want+"<") {
			t.Errorf("a session that should be %s is shown as %s", want, html.String())
		}
	}
}
