package search

import "strings"

// A long section is split at the next blank line after this many bytes. A text without headings is
// split only by its paragraphs.
const (
	sectionBytes   = 900
	paragraphBytes = 60
)

// Section is a passage of a document, small enough to be an answer.
type Section struct {
	Doc     string // the document's key, as passed to Split
	Title   string // the document's own title
	Heading string // the nearest heading above, "" before the first
	Line    int    // line where the passage begins, from 1
	Text    string // without the heading
}

// Split splits a Markdown or plain text into sections: at every heading, and in long sections at
// blank lines and table rows. It never splits a code block.
func Split(doc, content string) []Section {
	var (
		sections []Section
		text     strings.Builder
		cur      = Section{Doc: doc, Title: Title(content), Line: 1}
		fenced   bool
	)
	flush := func() {
		if t := strings.Trim(text.String(), "\n"); strings.TrimSpace(t) != "" {
			cur.Text = t
			sections = append(sections, cur)
		}
		text.Reset()
	}
	n := 0
	for line := range strings.SplitSeq(content, "\n") {
		n++
		line = strings.TrimRight(line, " \t\r")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if h, ok := parseHeading(line); ok && !fenced {
			flush()
			cur.Heading, cur.Line = h, n
			continue
		}
		limit := sectionBytes
		if cur.Heading == "" {
			limit = paragraphBytes
		}
		if (line == "" || strings.HasPrefix(line, "|")) && !fenced && text.Len() >= limit {
			flush()
		}
		if text.Len() == 0 {
			if line == "" {
				continue
			}
			if len(sections) > 0 && sections[len(sections)-1].Heading == cur.Heading {
				cur.Line = n
			}
		}
		text.WriteString(line)
		text.WriteByte('\n')
	}
	flush()
	return sections
}

// Title returns a document's first heading, or "".
func Title(content string) string {
	for line := range strings.SplitSeq(content, "\n") {
		if h, ok := parseHeading(strings.TrimRight(line, " \t\r")); ok {
			return h
		}
		if strings.HasPrefix(line, "```") {
			break
		}
	}
	return ""
}

// parseHeading parses a line like "## First week".
func parseHeading(line string) (string, bool) {
	rest := strings.TrimLeft(line, "#")
	if n := len(line) - len(rest); n < 1 || n > 6 || !strings.HasPrefix(rest, " ") {
		return "", false
	}
	h := strings.TrimSpace(rest)
	return h, h != ""
}
