package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// state is a turn rebuilt from its log.
type state struct {
	message  event.Message
	supplied event.Supplied
	steps    []*step

	compactions []event.Compacted

	response *event.ModelResponse // what the next reply will be; nil: not begun, or it cannot be read again

	fallback string // name of the model that answers in place of the agent's; "": none

	asked    map[string]question          // by the id of the call that needs the answer
	answered map[uuid.UUID]event.Decision // by the id of the question
	unseen   map[string]bool              // calls that an approval of their step did not show

	awaited map[string]question        // calls whose results the turn has waited for
	posted  map[string]event.ToolReply // results that were posted

	connects map[string]question // by the id of the call that needs a connection
	declined map[string]question // by the name of a tool server that was not connected in time
}

// question is a call for which the turn has waited. An approval applies only to the call as shown.
type question struct {
	id     uuid.UUID
	input  json.RawMessage // as an approval has shown it; nil: any
	window time.Duration   // how long it could be answered
	server string          // the tool server that must be connected
	scopes bool            // a grant with more scopes is needed
}

// step is one reply of the model and the outcome of its calls.
type step struct {
	reply   event.Reply
	begun   map[string]bool             // calls with a tool_use row
	results map[string]event.ToolResult // calls with a tool_result row
	outputs map[string]event.ToolOutput // the whole output if the result was cut

	reasoning []model.Reasoning // of the reply, opened
}

// rebuildState reads a turn's log.
func rebuildState(log []event.Event) (state, error) {
	s := state{asked: make(map[string]question), answered: make(map[uuid.UUID]event.Decision), unseen: make(map[string]bool),
		awaited: make(map[string]question), posted: make(map[string]event.ToolReply),
		connects: make(map[string]question), declined: make(map[string]question)}
	for _, ev := range log {
		body, err := ev.Body()
		if err != nil {
			return s, err
		}
		switch b := body.(type) {
		case event.Supplied:
			s.supplied = b
		case event.Message:
			s.message = b
		case event.ModelFallback:
			s.fallback, s.response = b.To, nil
		case event.ModelResponse:
			s.response = &b
		case event.Compacted:
			s.compactions, s.response = append(s.compactions, b), nil
		case event.Reply:
			s.response = nil
			s.steps = append(s.steps, &step{reply: b})
		case event.InputRequired:
			s.noteQuestion(b, ev.At)
		case event.ToolRequired:
			s.noteAwaited(b, b.Calls, b.ExpiresAt.Sub(ev.At))
		case event.ToolLater:
			s.noteAwaited(b, b.Calls, b.ExpiresAt.Sub(ev.At))
		case event.ToolReply:
			s.posted[b.ToolUseID] = b
		case event.ConnectRequired:
			s.notePaused(b, ev.At)
		case event.Decision:
			s.noteDecision(b)
		case event.ToolAgain:
			if st := s.lastStep(); st != nil {
				st.beginCall(b.ToolUseID)
			}
		case event.ToolUse:
			if st := s.lastStep(); st != nil {
				st.beginCall(b.ToolUseID)
			}
		case event.ToolOutput:
			if st := s.lastStep(); st != nil {
				st.addOutput(b)
			}
		case event.ToolResult:
			if st := s.lastStep(); st != nil {
				st.finishCall(b)
			}
		}
	}
	return s, nil
}

// noteQuestion records which calls a question covers.
func (s *state) noteQuestion(b event.InputRequired, at time.Time) {
	q := question{id: b.ApprovalID, window: b.ExpiresAt.Sub(at)}
	if b.What == event.InputSecret {
		s.asked[b.ToolUseID] = q
	}
	for _, op := range b.Operations {
		q.input = op.Input
		s.asked[op.ToolUseID] = q
	}
	if st := s.lastStep(); st != nil && b.What == event.InputApproval {
		for _, c := range st.reply.Calls {
			s.unseen[c.ID] = !slices.ContainsFunc(b.Step(), func(shown event.ShownCall) bool { return shown.ToolUseID == c.ID })
		}
	}
}

// decisionFor returns the answer about a call, if the call is still the one that was shown.
func (s *state) decisionFor(c event.ToolCall) (event.Decision, bool) {
	q, ok := s.asked[c.ID]
	if !ok || q.input != nil && !bytes.Equal(q.input, c.Input) {
		return event.Decision{}, false
	}
	d, ok := s.answered[q.id]
	return d, ok
}

// usages returns what each request of the turn used.
func (s *state) usages() (all []event.Usage) {
	for _, st := range s.steps {
		all = append(all, st.reply.Usage)
	}
	for _, c := range s.compactions {
		all = append(all, c.Usage)
	}
	return all
}

func (s *state) lastStep() *step {
	if len(s.steps) == 0 {
		return nil
	}
	return s.steps[len(s.steps)-1]
}

func (s *step) beginCall(id string) {
	if s.begun == nil {
		s.begun = make(map[string]bool)
	}
	s.begun[id] = true
}

func (s *step) addOutput(o event.ToolOutput) {
	if s.outputs == nil {
		s.outputs = make(map[string]event.ToolOutput)
	}
	s.outputs[o.ToolUseID] = o
}

func (s *step) finishCall(r event.ToolResult) {
	if s.results == nil {
		s.results = make(map[string]event.ToolResult)
	}
	s.results[r.ToolUseID] = r
}
