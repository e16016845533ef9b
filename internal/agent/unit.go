package agent

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/model"
)

// unit is a part of the conversation that the model sees as a whole or not at all.
type unit struct {
	at       place
	messages []model.Message
}

// place identifies a unit of the session. Step is 0 for the user's message and otherwise the number
// of the turn's step; the messages that the caller sent as the conversation before the session have
// negative numbers.
type place struct {
	Turn uuid.UUID
	Step int
}

// tokens estimates the size of a unit.
func (u unit) tokens() (n int) {
	for _, m := range u.messages {
		n += estimateTokens(m.Text)
		for _, c := range m.Calls {
			n += estimateTokens(c.Tool) + estimateTokens(string(c.Input))
		}
	}
	return n
}

// estimateTokens estimates the tokens of s: one for four characters, and a few for the frame.
func estimateTokens(s string) int { return utf8.RuneCountInString(s)/4 + 4 }

// fitUnits returns the newest messages of a history that fit a number of tokens, from a user's
// message on.
func fitUnits(past []unit, budget int) []unit {
	begin, used := len(past), 0
	for i := len(past) - 1; i >= 0; i-- {
		if used += past[i].tokens(); used > budget {
			break
		}
		if past[i].messages[0].Role == model.User {
			begin = i
		}
	}
	return past[begin:]
}

// joinUnits returns the messages of units. Some models repeat the ids of calls in later turns, and
// providers reject a conversation that has one twice, so a repeated id gets a suffix.
func joinUnits(units []unit) (messages []model.Message) {
	taken, renamed := make(map[string]bool), make(map[string]string)
	for _, u := range units {
		for _, m := range u.messages {
			if id, ok := renamed[m.CallID]; ok {
				m.CallID = id
			}
			m.Calls = slices.Clone(m.Calls)
			for i, c := range m.Calls {
				id := c.ID
				for n := 2; taken[id]; n++ {
					id = fmt.Sprintf("%s_%d", c.ID, n)
				}
				taken[id], renamed[c.ID], m.Calls[i].ID = true, id, id
			}
			messages = append(messages, m)
		}
	}
	return messages
}
