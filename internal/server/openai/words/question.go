package words

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/text/render"
)

// Question returns a turn's question in Markdown, with the possible answers. The user decides by
// this text: it shows calls exactly as they would run, and no part of them can pass for the
// server's text. Only the code in a reply identifies the approval. barred: the caller may not
// answer a request for a secret.
func Question(ask event.InputRequired, base string, barred bool) string {
	id := ask.ApprovalID
	code, until := session.CodeOf(id), ask.ExpiresAt.UTC().Format("15:04 MST")
	var b strings.Builder
	if ask.What == event.InputSecret {
		fmt.Fprintf(&b, "**The secret %s is needed.**", ask.KeyName)
		if said := render.Agent(ask.Reason); said != "" {
			b.WriteString("\n\n" + asCode(said))
		}
		without := fmt.Sprintf("or reply `%s %s` to continue without it.", deny, code)
		if barred {
			without = fmt.Sprintf("or `%s` to end the turn. To continue without it, a key needs the scope secret.", stop)
		}
		fmt.Fprintf(&b, "\n\nIts value never travels through a chat: until %s an approver provides it with `parley secret provide %s`, or "+
			"sends it to %s . "+
			"Then reply `%s %s`, %s", until, id, server.AbsoluteURL(base, ask.SecretURL), goOn, code, without)
		return b.String()
	}
	shown := ask.Step()
	for i := range shown {
		shown[i].Summary = markCode(shown[i].Summary)
	}
	fmt.Fprintf(&b, "**Approval needed:**\n\n%s\n\nReply `%s %s`, or `%s %s` with an optional reason, until %s. ", render.Calls(shown),
		allow, code, deny, code, until)
	if needs := render.Approver(ask); needs != "" {
		b.WriteString(needs + " ")
	}
	fmt.Fprintf(&b, "Elsewhere: `parley approvals show %s` shows all of it and `parley approvals allow %[1]s` allows it, or a POST to %s "+
		".", id, server.AbsoluteURL(base, ask.DecideURL))
	return b.String()
}

// Connect returns the question for access to a tool server, with its link.
func Connect(ask event.ConnectRequired, base string) string {
	return fmt.Sprintf("**Access needed:** %s\n\nThen reply `%s %s`.", render.Connect(ask, server.AbsoluteURL(base, ask.ConnectURL)+" ."),
		goOn, session.CodeOf(ask.ApprovalID))
}

// asCode turns quoted text of an agent into code, line by line, so that a chat that renders
// Markdown shows no link or image of it in the service's text.
func asCode(quoted string) string {
	lines := strings.Split(quoted, "\n")
	for i, line := range lines {
		if said, ok := strings.CutPrefix(line, "> "); ok {
			lines[i] = "> " + markCode(said)
		}
	}
	return strings.Join(lines, "\n")
}

// markCode returns a text as Markdown code, which no part of the text can end.
func markCode(text string) string {
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
