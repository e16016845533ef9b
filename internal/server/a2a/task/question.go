package task

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/text/render"
)

// publicData returns the data of an event without the version of its schema.
func publicData(data []byte) json.RawMessage {
	return append(json.RawMessage("{"), strings.TrimPrefix(string(data), fmt.Sprintf(`{"v":%d,`, event.Version))...)
}

// namedData returns the data of an event under its name.
func namedData(ev event.Event) json.RawMessage {
	return append(fmt.Appendf(nil, `{"event":%q,`, ev.Kind), publicData(ev.Data)[1:]...)
}

// questionMessage returns the question of a task: as text, and as data with absolute addresses.
func questionMessage(base string, t *Task, q event.InputRequired) *Message {
	var text strings.Builder
	switch q.What {
	case event.InputSecret:
		q.SecretURL = server.AbsoluteURL(base, q.SecretURL)
		fmt.Fprintf(&text, "The agent needs the secret %s. Never send it here: a person gives it at %s .\n\n%s", q.KeyName, q.SecretURL, render.Agent(q.Reason))
	default:
		q.DecideURL = server.AbsoluteURL(base, q.DecideURL)
		text.WriteString("The agent wants to do this. Answer with a message on this task that has the data part {\"decision\":\"allow\"} or {\"decision\":\"deny\"}.\n\n")
		text.WriteString(render.Approval(q))
	}
	m := agentMessage(t, 0, textPart(strings.TrimSpace(text.String())))
	m.MessageID = q.ApprovalID.String()
	if data, err := event.Encode(q); err == nil { // it was encoded before
		m.Parts = append(m.Parts, dataPart(publicData(data)))
	}
	return m
}
