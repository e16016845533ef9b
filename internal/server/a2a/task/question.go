package task

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
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
		fmt.Fprintf(&text, "The agent needs the secret %s. Never send it here: a person gives it at %s .\n\n%s", q.KeyName, q.SecretURL,
			render.Agent(q.Reason))
	default:
		q.DecideURL = server.AbsoluteURL(base, q.DecideURL)
		fmt.Fprintf(&text, "The agent wants to do this. Answer with a message on this task that has the text `allow %[1]s`, or `deny %[1]s` "+
			"with an optional reason, "+
			"or the data part {\"decision\":\"allow\"} or {\"decision\":\"deny\"}.\n\n", session.CodeOf(q.ApprovalID))
		text.WriteString(render.Approval(q))
	}
	return askMessage(t, q, text.String())
}

// callsMessage returns the calls of the caller's own tools that a task waits for.
func callsMessage(base string, t *Task, q event.ToolRequired) *Message {
	q.ReplyURL = server.AbsoluteURL(base, q.ReplyURL)
	return askMessage(t, q, fmt.Sprintf("The agent waits for results of tools of the program that sent the message. That program posts them "+
		"to %s .", q.ReplyURL))
}

// connectMessage returns the link for access to a tool server that a task waits for.
func connectMessage(base string, t *Task, q event.ConnectRequired) *Message {
	q.ConnectURL = server.AbsoluteURL(base, q.ConnectURL)
	return askMessage(t, q, render.Connect(q, q.ConnectURL))
}

// askMessage returns a message with a question as text and as data.
func askMessage(t *Task, q event.Question, text string) *Message {
	m := agentMessage(t, 0, textPart(strings.TrimSpace(text)))
	id, _ := q.Wait()
	m.MessageID = id.String()
	if data, err := event.Encode(q); err == nil { // it was encoded before
		m.Parts = append(m.Parts, dataPart(publicData(data)))
	}
	return m
}

// readQuestion returns an encoded question of a task, nil if this release does not know it.
func readQuestion(base string, t *Task, data []byte) *Message {
	body, err := event.QuestionBody(data)
	if err != nil {
		return nil
	}
	switch q := body.(type) {
	case event.ConnectRequired:
		return connectMessage(base, t, q)
	case event.InputRequired:
		return questionMessage(base, t, q)
	case event.ToolRequired:
		return callsMessage(base, t, q)
	}
	return nil
}
