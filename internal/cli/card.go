package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/text/render"
)

// renderCard renders a whole question for an approver. Each line is behind a bar, so that none can
// pass for a line of the program; then the agent's text is behind another mark, so that it cannot
// pass for the question; and every invisible character is escaped. Width 0 does not wrap.
func renderCard(ask event.InputRequired, width int, plan bool) string {
	s := &sheet{width: width}
	if ask.What == event.InputSecret {
		s.addText("┃ ", "secret "+ask.KeyName)
	}
	var summaries []string
	step := ask.Step()
	for i, c := range step {
		if c.Asks {
			summaries = append(summaries, c.Summary)
		}
		if s.b.Len() > 0 {
			s.addLine("┃", "")
		}
		s.addLine("┃ ", render.Role(step, i)+c.Tool+"  "+c.Summary)
		for _, m := range objectMembers(c.Input) {
			s.addMember(m.name, m.value)
		}
	}
	if needs := render.Approver(ask); needs != "" {
		s.b.WriteString(text.Escape(needs) + "\n")
	}
	s.addPlan(ask.Reason)
	if plan && ask.Plan != strings.Join(summaries, "; ") { // without text of the model, a plan equals its summaries
		s.addPlan(ask.Plan)
	}
	if s.escaped {
		s.b.WriteString("Some characters of this cannot be seen, or change what is: they are written as \\u… Look twice.\n")
	}
	return s.b.String()
}

// briefQuestion returns a question on one line.
func briefQuestion(ask event.InputRequired) string {
	if ask.What == event.InputSecret {
		return text.Escape("secret " + ask.KeyName + ": " + ask.Reason)
	}
	step := ask.Step()
	calls := make([]string, len(step))
	for i, c := range step {
		calls[i] = text.Escape(render.Role(step, i) + c.Tool + ": " + c.Summary)
	}
	return strings.Join(calls, "; ")
}

// sheet builds a card.
type sheet struct {
	b       strings.Builder
	width   int
	escaped bool
}

// addMember adds an argument: a one-line text as it is, a longer one line by line, any other value
// as JSON.
func (s *sheet) addMember(name string, value json.RawMessage) {
	var text string
	switch isText := json.Unmarshal(value, &text) == nil && value[0] == '"'; {
	case isText && strings.Contains(text, "\n"):
		s.addLine("┃   ", name+":")
		s.addText("┃   │ ", text)
	case isText && text != "" && strings.TrimSpace(text) == text && !json.Valid([]byte(text)):
		s.addLine("┃   ", name+": "+text)
	default:
		var b bytes.Buffer
		if json.Compact(&b, value) != nil {
			b.Write(value)
		}
		s.addLine("┃   ", name+": "+b.String())
	}
}

// addPlan adds the agent's text about its question.
func (s *sheet) addPlan(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	s.b.WriteString("The agent says:\n")
	s.addText("> ", text)
}

// addText adds a text of several lines.
func (s *sheet) addText(bar, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		s.addLine(bar, strings.ReplaceAll(line, "\t", "    "))
	}
}

// addLine adds one line, wrapped here: a terminal would wrap it past the bar. A broken bar marks
// the continuation of a line.
func (s *sheet) addLine(bar, line string) {
	shown := text.Escape(line)
	s.escaped = s.escaped || shown != line
	for {
		head, rest := shown, ""
		if s.width > 0 {
			head, rest = splitLine(shown, s.width-utf8.RuneCountInString(bar))
		}
		s.b.WriteString(bar + head + "\n")
		if rest == "" {
			return
		}
		shown, bar = rest, strings.Replace(bar, "┃", "┆", 1)
	}
}

// splitLine cuts a line at a width, and counts ambiguous characters as wide.
func splitLine(line string, width int) (head, rest string) {
	for i, r := range line {
		if r < 0x1100 {
			width--
		} else {
			width -= 2
		}
		if width < 0 && i > 0 {
			return line[:i], line[i:]
		}
	}
	return line, ""
}

// member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// objectMembers returns the members of an object, in its order. Any other value is one member
// without a name.
func objectMembers(raw json.RawMessage) (list []member) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return []member{{"", raw}}
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return []member{{"", raw}}
		}
		text, _ := name.(string)
		list = append(list, member{text, value})
	}
	return list
}
