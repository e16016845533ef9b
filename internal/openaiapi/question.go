package openaiapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/event"
)

// maxShown is how much of a call a question shows, in characters.
const maxShown = 10_000

// question is what a turn asks, in Markdown, with what to answer. base is for links. Who
// answers in a chat decides about what is written here: calls are shown as they would run, and
// nothing in them passes for words of ours.
func question(ask event.InputRequired, base string) string {
	until := ask.ExpiresAt.UTC().Format("15:04 MST")
	var b strings.Builder
	if ask.What == event.InputSecret {
		fmt.Fprintf(&b, "**The secret %s is needed.**", ask.KeyName)
		if ask.Reason != "" {
			fmt.Fprintf(&b, " %s", exact(ask.Reason))
		}
		fmt.Fprintf(&b, "\n\nIts value never travels through a chat: until %s somebody who may gives it with `parley secret provide %s`, or sends it to %s . "+
			"Then reply `continue`, or reply `deny` to go on without it.", until, ask.ApprovalID, door.Absolute(base, ask.SecretURL))
		return b.String()
	}
	b.WriteString("**Approval needed:**\n")
	for _, op := range ask.Operations {
		fmt.Fprintf(&b, "\n- %s\n\n%s\n", exact(op.Summary), block(op.Input))
	}
	fmt.Fprintf(&b, "\nReply `allow` or `deny` until %s. Elsewhere: `parley approvals allow %s`, or a POST to %s .", until, ask.ApprovalID, door.Absolute(base, ask.DecideURL))
	return b.String()
}

// block is the input of a call as a block of code, which nothing in it can end.
func block(input json.RawMessage) string {
	var indented bytes.Buffer
	if json.Indent(&indented, input, "", "  ") != nil {
		indented.Write(input)
	}
	lines := strings.Split(indented.String(), "\n")
	for i, line := range lines {
		lines[i] = exact(line)
	}
	text, cut := strings.Join(lines, "\n"), ""
	if n := utf8.RuneCountInString(text) - maxShown; n > 0 {
		text = string([]rune(text)[:maxShown])
		cut = fmt.Sprintf("\n\nThis was cut: there are %d characters more.", n)
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "json\n" + text + "\n" + fence + cut
}

// exact writes a line so that every character of it can be seen, as JSON would.
func exact(line string) string {
	var b strings.Builder
	for _, r := range line {
		if unicode.IsPrint(r) && r != '\u2800' && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
