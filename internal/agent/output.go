package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// Output describes the format of the final answer.
type Output struct {
	Schema      json.RawMessage
	Description string // for the model, besides the schema; "": none
	// Check returns the violations of a value as sentences for the model; nil: it fits.
	Check func(json.RawMessage) []string
}

const (
	finalAnswer      = "final_answer"
	finalDescription = "Give the final answer. Call this once, alone, when you have everything you need: it ends the turn."

	maxRepairs = 3 // maximum number of rejected answers in a turn
)

// finishAnswer reports whether the turn has its answer, and yields a structured one.
func (r *run) finishAnswer() (done bool, err error) {
	n := len(r.state.steps)
	if n == 0 {
		return false, nil
	}
	last := r.state.steps[n-1]
	if r.EndUnanswered && r.isUnanswered(last) {
		return true, nil
	}
	if r.Output == nil {
		return len(last.reply.Calls) == 0, nil
	}
	wrong := 0
	for _, s := range r.state.steps {
		answer, given := s.structuredAnswer()
		if !given {
			continue
		}
		problems := r.Output.Check(answer)
		if problems == nil {
			return true, r.emitEvents(event.Structured{Result: compactJSON(answer)})
		}
		if wrong++; wrong > maxRepairs {
			return false, &Failure{Code: event.StructuredOutputInvalid,
				Message: "The model's answers did not match the schema: " + problems[0]}
		}
	}
	return false, nil
}

// correctionAfter returns the instruction for a model that has stopped after n steps without an
// answer in the schema; "": it has not stopped.
func (r *run) correctionAfter(n int) string {
	last := r.state.steps[n-1]
	if r.Output == nil || len(last.reply.Calls) > 0 && !last.reply.JSON { // the model must read the results, including a rejected final_answer
		return ""
	}
	if answer, given := last.structuredAnswer(); given {
		return repairPrompt(r.Output.Check(answer))
	}
	return "Give the final answer now, as JSON that fits the schema."
}

// structuredAnswer returns the structured answer that a step proposes.
func (s *step) structuredAnswer() (json.RawMessage, bool) {
	if s.reply.JSON {
		return json.RawMessage(trimFence(s.reply.Text)), true
	}
	if len(s.reply.Calls) == 1 && s.reply.Calls[0].Tool == finalAnswer {
		return s.reply.Calls[0].Input, true
	}
	return nil, false
}

// fence encloses code in Markdown.
const fence = "```"

// trimFence returns the content of a Markdown code block, or the text itself.
func trimFence(text string) string {
	text = strings.TrimSpace(text)
	body, fenced := strings.CutPrefix(text, fence)
	if !fenced {
		return text
	}
	_, body, _ = strings.Cut(body, "\n") // the language
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), fence))
}

// checkFinalAnswer returns the result of a final_answer call that did not end the turn. Only the
// model sees it: neither the call nor the result is shown to users.
func (r *run) checkFinalAnswer(s *step, c event.ToolCall) model.Message {
	res := model.Message{Role: model.ToolRole, CallID: c.ID, Failed: true,
		Text: "Call final_answer alone, when the results of the other calls are there."}
	if answer, given := s.structuredAnswer(); given {
		problems := r.Output.Check(answer)
		res.Failed, res.Text = problems != nil, repairPrompt(problems)
	}
	return res
}

// repairPrompt describes the necessary corrections to the model.
func repairPrompt(problems []string) string {
	return fmt.Sprintf("This does not fit the schema:\n- %s\nGive the whole answer again.", strings.Join(problems, "\n- "))
}

// compactJSON returns JSON on one line.
func compactJSON(raw json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil { // it is valid JSON
		return raw
	}
	return buf.Bytes()
}

// IsReserved reports whether the agent itself uses the name of a tool.
func IsReserved(name string) bool {
	return name == finalAnswer || name == requestSecret || name == readResult
}
