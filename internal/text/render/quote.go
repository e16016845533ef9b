// Package render shows words of others among words of ours, so that none of theirs can pass
// for ours: what an agent wants to do, to whoever is to allow it, and what it says about that.
// It changes nothing that can be seen, and says where it leaves something out.
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

// The bounds of what is shown.
const (
	maxInput = 10_000 // characters of a call
	maxTail  = 3_000  // of these, those of its end where the middle is left out
	maxSaid  = 2_000  // characters of what an agent says
	maxLines = 20     // lines of that
)

// Approval is what somebody is asked to allow: the calls, and behind them what the agent says.
func Approval(ask event.InputRequired) string {
	var summaries []string
	for _, op := range ask.Operations {
		summaries = append(summaries, op.Summary)
	}
	text := Calls(ask.Step())
	if said := Agent(ask.Plan); said != "" && ask.Plan != strings.Join(summaries, "; ") { // that is what a plan is where nothing was said
		text += "\n\n" + said
	}
	if needs := Approver(ask); needs != "" {
		text = needs + "\n\n" + text
	}
	return text
}

// Approver returns in a sentence what a key needs to allow an approval beyond the scope chat, or "".
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

// Role says of a call of a step whether it needs the approval, in words that stand before the
// call's own. It is "" in a step where every call needs it.
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

// Agent is what an agent says, marked, and under words that say whose it is; "" where it says
// nothing.
func Agent(words string) string {
	said := Marked(words)
	if said == "" {
		return ""
	}
	return "The agent says:\n" + said
}

// Marked is a text of others with every line behind a mark, "" where there is none.
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

// left says how much is not shown.
func left(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("\n\nThis was cut: there are %d characters more.", n)
}

// block is the input of a call as a block of code, which nothing in it can end. Of a long one
// the middle is left out, between two blocks: what a command does at its end is seen.
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
	return fmt.Sprintf("%s\n\nHere %d characters are left out: `parley approvals show` has them.\n\n%s", code(string(head)), len(all)-maxInput, code(string(tail)))
}

// Exact writes a text on one line so that every character of it can be seen, as JSON would.
func Exact(s string) string { return text.Escape(s) }

// joins reports whether a character that cannot be seen is one that many languages, and signs
// like ❤️, are written with.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' || r == '\ufe0e' || r == '\ufe0f' }

// prose is Exact for what an agent says.
func prose(s string) string {
	return text.EscapeFunc(s, func(r rune) bool { return text.IsInvisible(r) && !joins(r) })
}
