package turns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/turn"
)

// maxName is the maximum length of a page's or a file's name in results, in characters.
const maxName = 255

// answerTexts returns the answer as text, followed by notes about it.
func answerTexts(o turn.Outcome) []string {
	var read []event.Reference
	var rejected []filestore.Rejected
	_ = json.Unmarshal(o.References, &read) // they were encoded by the service
	_ = json.Unmarshal(o.Rejected, &rejected)
	about := []string{fmt.Sprintf("[session_id: %s]", o.SessionID)}
	if o.Truncated {
		about = append(about, "[the answer is cut: the model reached its token limit]")
	}
	if len(read) > 0 {
		var paths []string
		for _, r := range read {
			paths = append(paths, render.Argument(r.Path, maxName))
		}
		about = append(about, fmt.Sprintf("[read: %s]", strings.Join(paths, ", ")))
	}
	for _, f := range o.Attachments {
		about = append(about, fmt.Sprintf("[%s, %d bytes: %s]", render.Argument(f.Filename, maxName), f.Size, f.DownloadURL))
	}
	for _, r := range rejected {
		about = append(about, fmt.Sprintf("[%s was not used: %s]", render.Argument(cmp.Or(r.Filename, r.FileID.String()), maxName), r.Reason))
	}
	texts := []string{strings.Join(about, "\n")}
	if text := joinParagraphs(*o.Output, string(o.StructuredResult)); text != "" {
		texts = append([]string{text}, texts...)
	}
	return texts
}

// failureTexts describes a turn without an answer as text: the reason and the remedy.
func failureTexts(o turn.Outcome) []string {
	code := event.Code(*o.Error)
	text := fmt.Sprintf("The agent has not answered: %s. %s", code, waysOut[code])
	if code.Recoverable() {
		text += " Use a new idempotency_key: with the old one, the call returns this failure again."
	}
	text += " get_messages returns the part of the answer before the failure, if there is one."
	return []string{text, fmt.Sprintf("[session_id: %s]", o.SessionID)}
}

// waysOut are the remedies for a failed turn.
var waysOut = map[event.Code]string{
	event.SessionGone:             "The conversation is not there any more. Begin another: send the message without session_id.",
	event.Canceled:                "The turn was canceled. Send the message again only if the user wants that.",
	event.TimedOut:                "It took longer than it may. Ask it in the same conversation to continue, or ask for less at once.",
	event.MaxTurnsExceeded:        "It took more steps than it may. Ask it in the same conversation to continue, or ask for less at once.",
	event.ModelError:              "Its model could not be used. If it fails again, an administrator has to look at the server's log.",
	event.ModelOverloaded:         "Its model is overloaded. Send the message again in a minute.",
	event.ContentRefused:          "Its model does not answer this. Ask in other words, or for something else.",
	event.StructuredOutputInvalid: "Its answer did not fit response_schema. Send the message again, or with a simpler schema.",
	event.SkillFailed:             "The skill cannot be run as it is stored. A person has to push it again.",
	event.BudgetExceeded:          "It would cost more than it may. Ask for less, or ask a person to raise the limit.",
	event.RunnerLost:              "Where its programs run was lost. Send the message again.",
	event.AgentsStopped:           "An administrator has stopped the agents. Send the message again when a person says that they run.",
	event.InternalError: "Something went wrong in the service. Send the message again; " +
		"if that does not help, a person has to look at its log.",
}

// withAbsoluteURLs makes the URLs in a question absolute: an MCP client has no base address.
func withAbsoluteURLs(base string, question json.RawMessage) json.RawMessage {
	var q map[string]json.RawMessage
	if json.Unmarshal(question, &q) != nil {
		return question
	}
	for _, name := range []string{"decide_url", "secret_url", "reply_url", "connect_url"} {
		var address string
		if json.Unmarshal(q[name], &address) == nil && address != "" {
			q[name], _ = json.Marshal(server.AbsoluteURL(base, address)) // a string cannot fail
		}
	}
	text, err := json.Marshal(q)
	if err != nil {
		return question
	}
	return text
}

// parseQuestion reads a question.
func parseQuestion(data json.RawMessage) (q event.InputRequired, err error) {
	if err := json.Unmarshal(data, &q); err != nil {
		return q, fmt.Errorf("read a question: %w", err)
	}
	return q, nil
}

// questionTexts describes the question of a turn.
func questionTexts(o turn.Outcome) (texts []string) {
	q, err := parseQuestion(o.InputRequired)
	if err != nil {
		return nil
	}
	text := joinParagraphs("The agent waits until "+formatClock(q.ExpiresAt)+
		" for an approval. Ask the person you work for, then answer with decide_approval.", render.Approval(q))
	if q.What == event.InputSecret {
		text = joinParagraphs(
			fmt.Sprintf("The agent waits until %s for the secret %s. Never send it here: a person gives it with POST %s .",
				formatClock(q.ExpiresAt), q.KeyName, q.SecretURL), render.Agent(q.Reason))
	}
	return []string{text, fmt.Sprintf("[session_id: %s, approval_id: %s]", o.SessionID, q.ApprovalID)}
}

// callTexts describes the calls of the caller's own tools that the turn waits for. The program that
// sent the message runs them: this protocol has no message for their results.
func callTexts(o turn.Outcome) []string {
	var q event.ToolRequired
	if json.Unmarshal(o.ToolRequired, &q) != nil {
		return nil
	}
	text := fmt.Sprintf(
		"The agent waits until %s for results of tools of the program that sent the message. That program posts them to %s . "+
			"Call get_messages later.",
		formatClock(q.ExpiresAt), q.ReplyURL)
	return []string{text, fmt.Sprintf("[session_id: %s]", o.SessionID)}
}

// connectTexts describes the link for access to a tool server that the turn waits for.
func connectTexts(o turn.Outcome) []string {
	var q event.ConnectRequired
	if json.Unmarshal(o.ConnectRequired, &q) != nil {
		return nil
	}
	return []string{render.Connect(q, q.ConnectURL) + " . Show the link to the person you work for, and call get_messages later.",
		fmt.Sprintf("[session_id: %s]", o.SessionID)}
}

// formatClock formats a time of the current day.
func formatClock(t time.Time) string { return t.Format("15:04:05 MST") }

// joinParagraphs joins the texts that are not empty.
func joinParagraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n")
}
