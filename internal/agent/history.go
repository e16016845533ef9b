package agent

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// Past is an earlier turn of the session. The texts are those that its messages show; they stand in
// for rows of Log that are missing.
type Past struct {
	Turn    uuid.UUID
	Message string          // the user's
	Answer  string          // everything that was shown
	Result  json.RawMessage // the answer in a schema; nil: none
	Log     []event.Event   // the turn's records, without text deltas
}

// units returns a turn as the model reads it afterwards: as it happened.
func (p Past) units(s state) []unit {
	units := s.suppliedUnits(p.Turn)
	add := func(n int, st *step, messages ...model.Message) {
		if len(messages) > 0 {
			u := unit{at: event.Place{Turn: p.Turn, Step: n}}
			u.add(st, messages...)
			units = append(units, u)
		}
	}
	if p.Message != "" {
		add(0, &step{}, model.Message{Role: model.User, Text: p.Message})
	}
	for i, st := range s.steps {
		add(i+1, st, st.asPast()...)
	}
	if rest := p.unrecorded(s); rest != "" {
		add(len(s.steps)+1, &step{}, model.Message{Role: model.Assistant, Text: rest})
	}
	return units
}

// unrecorded returns the part of the answer that no reply contains: the text of a reply that was
// broken off or, if the records are past their retention, the whole answer.
func (p Past) unrecorded(s state) string {
	if len(s.steps) == 0 {
		return joinText(p.Answer, string(p.Result))
	}
	rest := p.Answer
	for _, st := range s.steps {
		if st.reply.Text == "" || st.reply.JSON {
			continue
		}
		after, shown := strings.CutPrefix(strings.TrimPrefix(rest, event.StepBreak), st.reply.Text)
		if !shown { // a part of the reply was held back
			return ""
		}
		rest = after
	}
	return strings.TrimPrefix(rest, event.StepBreak)
}

// asPast returns a step of an earlier turn. An answer in a schema is text there, because the tool
// that received it belongs to its turn.
func (s *step) asPast() []model.Message {
	reply := model.Message{Role: model.Assistant, Text: s.reply.Text}
	var results []model.Message
	for _, c := range s.reply.Calls {
		if c.Tool == finalAnswer {
			reply.Text = joinText(reply.Text, string(c.Input))
			continue
		}
		reply.Calls = append(reply.Calls, c)
		results = append(results, s.resultMessage(c))
	}
	if reply.Text == "" && reply.Calls == nil {
		return nil
	}
	return append([]model.Message{reply}, results...)
}

// joinText joins two texts with a blank line.
func joinText(a, b string) string { return strings.Trim(a+event.StepBreak+b, "\n") }

// suppliedUnits returns the messages that the caller sent as the conversation before the session,
// each unit with a message of the user and what follows it.
func (s *state) suppliedUnits(turn uuid.UUID) (units []unit) {
	for i, m := range s.supplied.Messages {
		if i == 0 || m.Role == string(model.User) {
			units = append(units, unit{})
		}
		last := &units[len(units)-1]
		last.messages = append(last.messages, model.Message{Role: model.Role(m.Role), Text: m.Text, Calls: m.Calls, CallID: m.CallID})
	}
	for i := range units {
		units[i].at = event.Place{Turn: turn, Step: i - len(units)}
	}
	return units
}
