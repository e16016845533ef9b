package builtin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/search"
)

// attachment is a file of the message whose text the request has.
type attachment struct{ name, text string }

var (
	attachmentBlock = regexp.MustCompile(
		`\n\n<attachment name=("(?:[^"\\]|\\.)*") type="(?:[^"\\]|\\.)*"( note="[^"]*")?>\n("(?:[^"\\]|\\.)*")\n</attachment>`)
	attachmentBare  = regexp.MustCompile(`(?m)\n\n\[attached: (.*), [^,\n]*, \d+ bytes; its content is not shown\]$`)
	pageMark        = regexp.MustCompile(`(?m)^\[page \d+\](?:\n|$)`)
	attachmentNote  = regexp.MustCompile(`(?m)\n\n\[(?:attached: |tools find what is attached at |The content of ").*\]$`)
	attachmentAsked = regexp.MustCompile(`(?i)\b(attach\w*|files?|documents?|pdfs?|this)\b`)
)

// attachmentsIn separates a message from the attachments that the request appends to it. unread has a
// sentence for each attachment without a text.
func attachmentsIn(message string) (question string, list []attachment, unread []string) {
	for _, m := range attachmentBare.FindAllStringSubmatch(message, -1) {
		unread = append(unread, fmt.Sprintf("I cannot read the attachment %s.", m[1]))
	}
	for _, m := range attachmentBlock.FindAllStringSubmatch(message, -1) {
		var a attachment
		var err error
		if a.name, err = strconv.Unquote(m[1]); err != nil || json.Unmarshal([]byte(m[3]), &a.text) != nil {
			continue
		}
		if extracted := m[2] != ""; extracted {
			if !pageMark.MatchString(a.text) {
				unread = append(unread, a.noText())
				continue
			}
			a.text = withoutPageMarks(a.text)
		}
		list = append(list, a)
	}
	return attachmentNote.ReplaceAllString(attachmentBlock.ReplaceAllString(message, ""), ""), list, unread
}

// withoutPageMarks removes the lines before the pages of a PDF.
func withoutPageMarks(text string) string { return pageMark.ReplaceAllString(text, "") }

// noText returns the sentence for a PDF without pages: its text is a note that explains the reason.
func (a attachment) noText() string {
	note := strings.Trim(a.text, "[]\n")
	if reason, ok := strings.CutPrefix(note, "The PDF has no text"); ok {
		return fmt.Sprintf("The attachment %s has no text%s", a.name, reason)
	}
	return fmt.Sprintf("I cannot read the attachment %s: %s.", a.name, note)
}

// mentionUnread mentions the attachments that have no text before the rest of the reply.
func (c conversation) mentionUnread(r reply) reply {
	if len(c.unread) == 0 || len(r.calls) > 0 {
		return r
	}
	text := strings.Join(c.unread, "\n\n")
	if len(r.parts) > 0 {
		text += "\n\n"
	}
	return r.withParts(append([]part{splitWords(text, wordsPerSecond)}, r.parts...)...)
}

// fromAttachments answers from the attachments.
func (c conversation) fromAttachments() found {
	var sections []search.Section
	for _, a := range c.attachments {
		sections = append(sections, search.Split(a.name, a.text)...)
	}
	return findPassages(c.question, search.New(sections).Find(c.question, maxPassages), func(h search.Hit) string {
		return "the attachment " + h.Doc
	})
}

// summariseAttachments writes the main points of the attachments.
func (c conversation) summariseAttachments() reply {
	var b strings.Builder
	for i, a := range c.attachments {
		if i > 0 {
			b.WriteString("\n\n")
		}
		points := summarizePage(a.text)
		switch {
		case strings.TrimSpace(a.text) == "":
			fmt.Fprintf(&b, "The attachment %s is empty.", a.name)
			continue
		case len(points) == 0:
			fmt.Fprintf(&b, "I find no sentences in the attachment %s.", a.name)
			continue
		}
		fmt.Fprintf(&b, "**%s** in short:\n\n- %s\n\nFrom the attachment %s.", a.name, strings.Join(points, "\n- "), a.name)
	}
	return sayText(b.String())
}
