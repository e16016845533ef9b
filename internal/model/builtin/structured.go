package builtin

import (
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/schema"
)

// finalAnswer is the tool that receives an answer in a schema.
const finalAnswer = "final_answer"

// none is an answer that is withheld: the agent then insists.
const none = "none"

// structuredReply ends a turn with an answer in a schema: after its usual text, the guide calls
// final_answer. Text sent before a rejected answer is not repeated.
func (c conversation) structuredReply(p program, r reply) reply {
	if p.finalAnswer(c.step) == none {
		return r
	}
	for _, earlier := range c.results {
		if earlier.call.Tool == finalAnswer && p.steps == nil {
			r.parts = nil
		}
	}
	value := c.structuredValue(p, saidText(r))
	input := json.RawMessage(value)
	if !json.Valid(input) {
		input = model.Input(value)
	}
	r.calls = []event.ToolCall{{Tool: finalAnswer, Input: input}}
	return r
}

// structuredValue returns the answer in the schema: the script's own, or one made of words.
func (c conversation) structuredValue(p program, words string) string {
	for i := c.step; i <= c.step+len(p.answers); i++ {
		if a := p.finalAnswer(i); a != none && a != "" {
			return a
		}
	}
	if strings.TrimSpace(words) == "" {
		words = plainLines(c.question)
	}
	s, err := schema.Compile(c.schema)
	if err != nil { // the agent has already compiled it
		return "null"
	}
	sample, ok := s.Sample(words)
	if !ok {
		return "null"
	}
	return string(sample)
}

// finalAnswer returns the answer of a step: the script's first one belongs to the step that ends
// it, the others follow one by one.
func (p program) finalAnswer(step int) string {
	end := len(p.steps)
	if end > 0 && len(p.steps[end-1].calls) == 0 && p.steps[end-1].stop == "" {
		end--
	}
	if i := max(step-end, 0); i < len(p.answers) {
		return p.answers[i]
	}
	return ""
}

// saidText returns the beginning of a reply's text.
func saidText(r reply) string {
	const enough = 1000
	var b strings.Builder
	for _, p := range r.parts {
		for i := p.from; i < p.n && p.stamped == 0 && b.Len() < enough; i++ {
			b.WriteString(event.Plain(p.delta(i)))
		}
	}
	return b.String()
}

// plainLines returns a message without its directives.
func plainLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if _, _, ok := parseDirective(line); !ok {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// beforeCorrections finds the user's own message if an agent insists on an answer in a schema:
// answers and their violations follow it, the last one at the end. A script is recognized by its
// directives.
func beforeCorrections(messages []model.Message) int {
	question, script := len(messages)-1, -1
	for i, m := range messages {
		if m.Role != model.User {
			continue
		}
		if i < len(messages)-1 {
			question = i
		}
		if _, scripted := parseScript(m.Text); scripted {
			script = i
		}
	}
	if script >= 0 {
		return script
	}
	return question
}
