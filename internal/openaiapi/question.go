package openaiapi

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
)

// question is what a turn asks, in words, with what to answer. base is for links.
func question(ask event.InputRequired, base string) string {
	until := ask.ExpiresAt.UTC().Format("15:04 MST")
	var b strings.Builder
	if ask.What == event.InputSecret {
		fmt.Fprintf(&b, "**The secret %s is needed.**", ask.KeyName)
		if ask.Reason != "" {
			fmt.Fprintf(&b, " %s", ask.Reason)
		}
		fmt.Fprintf(&b, "\n\nIts value never travels through a chat: until %s somebody who may can send it to %s . Then reply `continue`, or reply `deny` to go on without it.",
			until, door.Absolute(base, ask.SecretURL))
		return b.String()
	}
	b.WriteString("**Approval needed:**\n")
	for _, op := range ask.Operations {
		fmt.Fprintf(&b, "\n- %s", op.Summary)
	}
	fmt.Fprintf(&b, "\n\nReply `allow` or `deny` until %s, or answer at %s .", until, door.Absolute(base, ask.DecideURL))
	return b.String()
}
