package cli

import (
	"errors"
	"io"
	"testing"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
)

// TestAdviceIsGivenOnce checks that the hint does not repeat or contradict the message of a failure.
func TestAdviceIsGivenOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, message, want string }{
		{string(event.ModelOverloaded), "The model is overloaded. Send the message again in a minute.", ""},
		{string(event.ModelError), "The connection to the agent's model broke. Send the message again.", ""},
		{string(event.RunnerLost), "The sandbox was lost.", "Send the message again."},
	} {
		v := (&command{Host: Host{Stdout: io.Discard, Stderr: io.Discard}}).newViewer(nil, "text")
		v.failed = &failure{Code: c.code, Message: c.message, Recoverable: true}
		p, ok := errors.AsType[*problem](v.finishStream(nil, 0))
		if !ok || p.Why != c.message || p.Do != c.want {
			t.Errorf("%s: %+v, want the hint %q", c.message, p, c.want)
		}
	}
}

// TestAnEndIsNamedOnce checks the notes about messages that are not complete.
func TestAnEndIsNamedOnce(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]client.HistoryMessage{
		"(canceled)":            {Status: "canceled", Error: new("canceled")},
		"(failed: model_error)": {Status: "failed", Error: new("model_error")},
	} {
		if got := endingNote(m); got != want {
			t.Errorf("%+v: %s, want %s", m, got, want)
		}
	}
}
