package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/turn"
)

// linked makes the URLs in a question absolute: an MCP client has no base address.
func linked(base string, question json.RawMessage) json.RawMessage {
	var q map[string]json.RawMessage
	if json.Unmarshal(question, &q) != nil {
		return question
	}
	for _, name := range []string{"decide_url", "secret_url"} {
		var address string
		if json.Unmarshal(q[name], &address) == nil && address != "" {
			q[name], _ = json.Marshal(server.AbsoluteURL(base, address)) // of a string it cannot fail
		}
	}
	text, err := json.Marshal(q)
	if err != nil {
		return question
	}
	return text
}

// asked reads a question.
func asked(data json.RawMessage) (q event.InputRequired, err error) {
	if err := json.Unmarshal(data, &q); err != nil {
		return q, fmt.Errorf("read a question: %w", err)
	}
	return q, nil
}

// needs describes as text what a turn waits for.
func needs(o turn.Outcome) (texts []string) {
	q, err := asked(o.InputRequired)
	if err != nil {
		return nil
	}
	text := paragraphs("The agent waits until "+clock(q.ExpiresAt)+" for an approval. Ask the person you work for, then answer with decide_approval.", render.Approval(q))
	if q.What == event.InputSecret {
		text = paragraphs(fmt.Sprintf("The agent waits until %s for the secret %s. Never send it here: a person gives it with POST %s .", clock(q.ExpiresAt), q.KeyName, q.SecretURL), render.Agent(q.Reason))
	}
	return []string{text, fmt.Sprintf("[session_id: %s, approval_id: %s]", o.SessionID, q.ApprovalID)}
}

// clock is a time of today.
func clock(t time.Time) string { return t.Format("15:04:05 MST") }

// paragraphs joins what there is to say.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n")
}
