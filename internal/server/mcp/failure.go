package mcp

import (
	"fmt"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/turn"
)

// failure describes a turn without an answer as text: the reason, and what to do.
func failure(o turn.Outcome) []string {
	code := event.Code(*o.Error)
	text := fmt.Sprintf("The agent has not answered: %s. %s", code, waysOut[code])
	if code.Recoverable() {
		text += " What is sent again needs a new idempotency_key: under the old one it finds this end."
	}
	return []string{text + " What it had said until then, if anything, is in get_messages.", fmt.Sprintf("[session_id: %s]", o.SessionID)}
}

// waysOut say what to do about a turn that has failed.
var waysOut = map[event.Code]string{
	event.SessionGone:             "The conversation is not there any more. Begin another: send the message without session_id.",
	event.Canceled:                "Somebody stopped it. Send the message again only if the person you work for wants that.",
	event.TimedOut:                "It took longer than it may. Tell it in the same conversation to go on, or ask for less at once.",
	event.MaxTurnsExceeded:        "It took more steps than it may. Tell it in the same conversation to go on, or ask for less at once.",
	event.ModelError:              "Its model could not be used. Send the message again; if that does not help, a person has to look at the model's settings.",
	event.ModelOverloaded:         "Its model is overloaded. Send the message again in a minute.",
	event.ContentRefused:          "Its model does not answer this. Ask in other words, or for something else.",
	event.StructuredOutputInvalid: "Its answer did not fit response_schema. Send the message again, or with a simpler schema.",
	event.SkillFailed:             "The skill cannot be run as it is stored. A person has to push it again.",
	event.BudgetExceeded:          "It would cost more than it may. Ask for less, or ask a person to raise the limit.",
	event.RunnerLost:              "Where its programs run was lost. Send the message again.",
	event.InternalError:           "Something went wrong in the service. Send the message again; if that does not help, a person has to look at its log.",
}
