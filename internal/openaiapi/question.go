package openaiapi

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/quote"
)

// question is what a turn asks, in Markdown, with what to answer: from the second question of a
// session on that is a word with its number. base is for links. Who
// answers in a chat decides about what is written here: calls are shown as they would run, and
// nothing in them passes for words of ours.
func question(ask event.InputRequired, number int, base string) string {
	yes, no := allow, deny
	if number > 1 {
		yes, no = fmt.Sprintf("%s %d", allow, number), fmt.Sprintf("%s %d", deny, number)
	}
	until := ask.ExpiresAt.UTC().Format("15:04 MST")
	var b strings.Builder
	if ask.What == event.InputSecret {
		fmt.Fprintf(&b, "**The secret %s is needed.**", ask.KeyName)
		if said := quote.Agent(ask.Reason); said != "" {
			b.WriteString("\n\n" + said)
		}
		fmt.Fprintf(&b, "\n\nIts value never travels through a chat: until %s somebody who may gives it with `parley secret provide %s`, or sends it to %s . "+
			"Then reply `continue`, or reply `%s` to go on without it.", until, ask.ApprovalID, door.Absolute(base, ask.SecretURL), no)
		return b.String()
	}
	fmt.Fprintf(&b, "**Approval needed:**\n\n%s\n\nReply `%s` or `%s` until %s. Elsewhere: `parley approvals allow %s`, or a POST to %s .", quote.Operations(ask.Operations), yes, no, until, ask.ApprovalID, door.Absolute(base, ask.DecideURL))
	return b.String()
}
