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
	attachmentBlock = regexp.MustCompile(`\n\n<attachment name=("(?:[^"\\]|\\.)*") type="(?:[^"\\]|\\.)*"(?: note="[^"]*")?>\n("(?:[^"\\]|\\.)*")\n</attachment>`)
	attachmentNote  = regexp.MustCompile(`(?m)\n\n\[(?:attached: |tools find what is attached at |The content of ").*\]$`)
	attachmentAsked = regexp.MustCompile(`(?i)\b(attach\w*|files?|documents?|pdfs?|this)\b`)
)

// attachmentsIn separates a message from the attachments that the request appends to it.
func attachmentsIn(message string) (question string, list []attachment) {
	for _, m := range attachmentBlock.FindAllStringSubmatch(message, -1) {
		var a attachment
		var err error
		if a.name, err = strconv.Unquote(m[1]); err == nil && json.Unmarshal([]byte(m[2]), &a.text) == nil {
			list = append(list, a)
		}
	}
	return attachmentNote.ReplaceAllString(attachmentBlock.ReplaceAllString(message, ""), ""), list
}

// fromAttachments answers from the attachments.
func (c conversation) fromAttachments() found {
	var sections []search.Section
	for _, a := range c.attachments {
		sections = append(sections, search.Split(a.name, a.text)...)
	}
	return findPassages(c.question, search.New(sections).Find(c.question, maxPassages), func(h search.Hit) string { return "the attachment " + h.Doc })
}

// summariseAttachments writes the main points of the attachments.
func (c conversation) summariseAttachments() reply {
	var b strings.Builder
	for i, a := range c.attachments {
		if i > 0 {
			b.WriteString("\n\n")
		}
		points := summarizePage(a.text)
		if len(points) == 0 {
			fmt.Fprintf(&b, "I find no sentences in the attachment %s.", a.name)
			continue
		}
		fmt.Fprintf(&b, "**%s** in short:\n\n- %s\n\nFrom the attachment %s.", a.name, strings.Join(points, "\n- "), a.name)
	}
	return sayText(b.String())
}
