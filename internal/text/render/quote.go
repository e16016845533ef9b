// Package render renders a model's text among our own, so that none of it can be mistaken for ours:
// the calls that an agent wants to make, for their approver, and the agent's explanation. It
// changes nothing visible, and marks every omission.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
)

// The limits of the rendered text.
const (
	maxInput = 10_000 // characters of a call
	maxTail  = 3_000  // characters at the end of a shortened input
	maxSaid  = 2_000  // characters of the agent's text
	maxLines = 20     // lines of the agent's text
)

// Approval renders an approval for its approver: the calls, followed by the agent's text.
func Approval(ask event.InputRequired) string {
	var summaries []string
	for _, op := range ask.Operations {
		summaries = append(summaries, op.Summary)
	}
	text := Calls(ask.Step())
	// without text of the agent, the plan consists of the summaries
	if said := Agent(ask.Plan); said != "" && ask.Plan != strings.Join(summaries, "; ") {
		text += "\n\n" + said
	}
	if needs := Approver(ask); needs != "" {
		text = needs + "\n\n" + text
	}
	return text
}

// Approver returns in a sentence what a key needs to allow an approval beyond the scope chat, or
// "".
func Approver(ask event.InputRequired) string {
	var needs []string
	for _, op := range ask.Operations {
		if scope := op.RequiredScope; scope != "" && !slices.Contains(needs, scope) {
			needs = append(needs, scope)
		}
	}
	text := ""
	if len(needs) > 0 {
		text = "Only a key with the scope " + strings.Join(needs, " and ") + " can allow this."
	}
	if ask.SeparateApprover {
		text = strings.TrimSpace(text + " The key that sent the message cannot allow it.")
	}
	return text
}

// Calls renders the calls of a step as they would run, in Markdown and in their order.
func Calls(list []event.ShownCall) string {
	shown := make([]string, len(list))
	for i, c := range list {
		shown[i] = fmt.Sprintf("- %s%s: %s\n\n%s", Role(list, i), Exact(c.Tool), Exact(c.Summary), block(c.Input))
	}
	return strings.Join(shown, "\n\n")
}

// Role describes whether a call of a step needs the approval, as a prefix for the call's own words.
// It is "" in a step in which every call needs it.
func Role(list []event.ShownCall, i int) string {
	if !slices.ContainsFunc(list, func(c event.ShownCall) bool { return !c.Asks }) {
		return ""
	}
	role := "runs without an approval"
	if list[i].Asks {
		role = "needs this approval"
	}
	return fmt.Sprintf("call %d of %d, %s: ", i+1, len(list), role)
}

// Agent renders the agent's text behind marks, after a line that names its author; "" for no text.
func Agent(words string) string {
	said := Marked(words)
	if said == "" {
		return ""
	}
	return "The agent says:\n" + said
}

// Marked returns a foreign text with every line behind a mark, or "" for no text.
func Marked(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if text == "" {
		return ""
	}
	rest := utf8.RuneCountInString(text)
	if rest > maxSaid {
		text = string([]rune(text)[:maxSaid])
	}
	lines := strings.Split(text, "\n")
	lines = lines[:min(len(lines), maxLines)]
	rest -= utf8.RuneCountInString(strings.Join(lines, "\n"))
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+prose(strings.ReplaceAll(line, "\t", "    ")), " ")
	}
	return strings.Join(lines, "\n") + left(rest)
}

// left describes how many characters are not shown.
func left(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("\n\nThis was cut: there are %d characters more.", n)
}

// block renders the input of a call as a block of code, which nothing in the input can end. It
// omits the middle of a long input, between two blocks, so that the end of a command is visible.
func block(input json.RawMessage) string {
	var indented bytes.Buffer
	if json.Indent(&indented, input, "", "  ") != nil {
		indented.Write(input)
	}
	lines := strings.Split(indented.String(), "\n")
	for i, line := range lines {
		lines[i] = Exact(line)
	}
	text := strings.Join(lines, "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	code := func(text string) string { return fence + "json\n" + text + "\n" + fence }
	all := []rune(text)
	if len(all) <= maxInput {
		return code(text)
	}
	head, tail := all[:maxInput-maxTail], all[len(all)-maxTail:]
	return fmt.Sprintf("%s\n\nHere %d characters are left out: `parley approvals show` has them.\n\n%s", code(string(head)),
		len(all)-maxInput, code(string(tail)))
}

// Exact renders a text on one line so that every character of it is visible, as JSON would.
func Exact(s string) string { return text.Escape(s) }

// joins reports whether an invisible character is one that many languages, and signs like ❤️, are
// written with.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' || r == '\ufe0e' || r == '\ufe0f' }

// prose is Exact for the agent's text.
func prose(s string) string {
	return text.EscapeFunc(s, func(r rune) bool { return text.IsInvisible(r) && !joins(r) })
}
