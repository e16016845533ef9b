package agent

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// unit is a part of the conversation that the model sees as a whole or not at all.
type unit struct {
	at       event.Place
	messages []model.Message
	// shortened has the outputs of which the model reads a preview, by the index of the message.
	shortened map[int]event.ToolOutput
}

// add adds the messages of a step.
func (u *unit) add(s *step, messages ...model.Message) {
	for _, m := range messages {
		if out := s.outputs[m.CallID]; m.Role == model.ToolRole && out.Preview != "" {
			if u.shortened == nil {
				u.shortened = make(map[int]event.ToolOutput)
			}
			u.shortened[len(u.messages)] = out
		}
		u.messages = append(u.messages, m)
	}
}

// tokens estimates the size of a unit.
func (u unit) tokens() (n int) {
	for _, m := range u.messages {
		n += estimateTokens(m.Text)
		for _, c := range m.Calls {
			n += estimateTokens(c.Tool) + tokensOf(utf8.RuneCount(c.Input))
		}
		for _, f := range m.Files {
			n += utf8.RuneCountInString(f.Text) / 4
		}
	}
	return n
}

// estimateTokens estimates the tokens of s: one for four characters, and a few for the frame.
func estimateTokens(s string) int { return tokensOf(utf8.RuneCountInString(s)) }

func tokensOf(characters int) int { return characters/4 + 4 }

// fitUnits returns the newest messages of a history that fit a number of tokens without the results of
// tools, from a user's message on.
func fitUnits(past []unit, budget int) []unit {
	begin, used := len(past), 0
	for i := len(past) - 1; i >= 0; i-- {
		if used += past[i].maskedTokens(true); used > budget {
			break
		}
		if past[i].messages[0].Role == model.User {
			begin = i
		}
	}
	return past[begin:]
}

// renameCalls returns units whose calls have different ids, which previews name. Some models repeat
// ids in later turns, and providers reject a conversation that has one twice, so a repeated id gets a
// suffix.
func renameCalls(units []unit) []unit {
	taken, renamed := make(map[string]bool), make(map[string]string)
	units = slices.Clone(units)
	for i := range units {
		units[i].messages = slices.Clone(units[i].messages)
		for j := range units[i].messages {
			m := &units[i].messages[j]
			if id, ok := renamed[m.CallID]; ok {
				m.CallID = id
			}
			m.Calls = slices.Clone(m.Calls)
			for k, c := range m.Calls {
				id := c.ID
				for n := 2; taken[id]; n++ {
					id = fmt.Sprintf("%s_%d", c.ID, n)
				}
				taken[id], renamed[c.ID], m.Calls[k].ID = true, id, id
			}
		}
	}
	return nameResults(units)
}

// joinUnits returns the messages of units.
func joinUnits(units []unit) (messages []model.Message) {
	for _, u := range units {
		messages = append(messages, u.messages...)
	}
	return messages
}
