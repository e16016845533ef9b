package openai

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/text/render"
)

// question returns a turn's question in Markdown, with the possible answers: from the second
// question of a session on a word with its number. The user decides by this text: calls are shown
// as they would run, and nothing in them can pass for the server's words. The question's id comes
// last; it identifies the conversation.
func question(ask event.InputRequired, number int, about About) string {
	yes, no := allow, deny
	if number > 1 {
		yes, no = fmt.Sprintf("%s %d", allow, number), fmt.Sprintf("%s %d", deny, number)
	}
	until := ask.ExpiresAt.UTC().Format("15:04 MST")
	bound := ""
	if about.Unbound != "" {
		bound = " " + about.Unbound
	}
	var b strings.Builder
	if ask.What == event.InputSecret {
		fmt.Fprintf(&b, "**The secret %s is needed.**", ask.KeyName)
		if said := render.Agent(ask.Reason); said != "" {
			b.WriteString("\n\n" + dead(said))
		}
		without := fmt.Sprintf("or reply `%s` to go on without it.", no)
		if about.Barred {
			without = fmt.Sprintf("or `%s` to end the turn. To go on without it takes a key with the scope secret.", stop)
		}
		fmt.Fprintf(&b, "\n\nIts value never travels through a chat: until %s somebody who may gives it with `parley secret provide %s`, or sends it to %s . "+
			"Then reply `continue`, %s%s", until, ask.ApprovalID, server.AbsoluteURL(about.Base, ask.SecretURL), without, bound)
		return b.String()
	}
	shown := ask.Step()
	for i := range shown {
		shown[i].Summary = code(shown[i].Summary)
	}
	if needs := render.Approver(ask); needs != "" {
		bound = " " + needs + bound
	}
	fmt.Fprintf(&b, "**Approval needed:**\n\n%s\n\nReply `%s` or `%s` until %s.%s ", render.Calls(shown), yes, no, until, bound)
	fmt.Fprintf(&b, "Elsewhere: `parley approvals show %s` has it whole and `parley approvals allow %[1]s` allows it, or a POST to %s .", ask.ApprovalID, server.AbsoluteURL(about.Base, ask.DecideURL))
	return b.String()
}

// The notes of a question in an unnamed chat, by protocol.
const (
	unboundCompletion = "This chat has no name (the field `user` or the header `X-Session-Id` gives one), so a reply counts only where your client sends this conversation along."
	unboundResponse   = "This chat has no name (the field `conversation` or the header `X-Session-Id` gives one), so a reply counts only where your client sends `previous_response_id` or this conversation along."
)

// dead makes what is quoted of an agent code, line by line: in a chat that shows Markdown no link
// or image of it is alive in what we say.
func dead(quoted string) string {
	lines := strings.Split(quoted, "\n")
	for i, line := range lines {
		if said, ok := strings.CutPrefix(line, "> "); ok {
			lines[i] = "> " + code(said)
		}
	}
	return strings.Join(lines, "\n")
}

// code is a text as a piece of code, which nothing in it can end.
func code(text string) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + text + fence
}
