package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/turn"
)

// linked completes the addresses in a question: whoever reads it here knows no others.
func linked(base string, question json.RawMessage) json.RawMessage {
	var q map[string]json.RawMessage
	if json.Unmarshal(question, &q) != nil {
		return question
	}
	for _, name := range []string{"decide_url", "secret_url"} {
		var address string
		if json.Unmarshal(q[name], &address) == nil && address != "" {
			q[name], _ = json.Marshal(door.Absolute(base, address)) // of a string it cannot fail
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

// needs says what a turn waits for, for who reads text alone.
func needs(o turn.Outcome) string {
	q, err := asked(o.InputRequired)
	if err != nil {
		return ""
	}
	if q.What == event.InputSecret {
		return fmt.Sprintf("The agent waits until %s for the secret %s. Never send it here: a person gives it with POST %s.\n%s\n\n[session_id: %s, approval_id: %s]",
			clock(q.ExpiresAt), q.KeyName, q.SecretURL, q.Reason, o.SessionID, q.ApprovalID)
	}
	return fmt.Sprintf("The agent waits until %s for an approval. Ask the person you work for, then answer with decide_approval.\n%s\n\n[session_id: %s, approval_id: %s]",
		clock(q.ExpiresAt), plan(q), o.SessionID, q.ApprovalID)
}

// plan is what an approval is about, in words.
func plan(q event.InputRequired) string {
	text := q.Plan
	for _, op := range q.Operations {
		text += fmt.Sprintf("\n- %s: %s %s", op.Tool, op.Summary, op.Input)
	}
	return text
}

// clock is a time of today.
func clock(t time.Time) string { return t.Format("15:04:05 MST") }

// paragraphs joins what there is to say.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n")
}
