package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/text"
)

// piece is a piece of a line: plain text, or one with a class of the style sheet.
type piece struct {
	Text  string `json:"t"`
	Class string `json:"c,omitempty"` // k: a name, host: where a request goes, esc: an escape
}

// call renders the input of a tool call for its approver, in full. It has no Markdown and no HTML.
// A name begins in the first column, and the lines of its value do not, so that no value can look
// like another member.
type call struct {
	lines    [][]piece
	warnings []string
	hidden   []rune // the characters that are written as escapes, each once
	escapes  int
}

// renderCall returns the lines of a call and what its approver must know about them.
func renderCall(tool string, input json.RawMessage) (lines [][]piece, warnings []string) {
	c := &call{}
	names, values, ok := members(input)
	switch {
	case !ok:
		c.value("", "", string(input))
	case tool == "bash" && len(names) == 1 && names[0] == "command" && isString(values[0]):
		c.value("", "", decodeString(values[0]))
	default:
		for i, name := range names {
			c.member(name, values[i])
		}
	}
	if c.escapes > 0 {
		c.warnings = append([]string{c.describe()}, c.warnings...)
	}
	return c.lines, c.warnings
}

// members returns the members of a JSON object in their order.
func members(input json.RawMessage) (names []string, values []json.RawMessage, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(input))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, false
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, nil, false
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values, true
}

func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

func decodeString(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // the raw value was decoded before
	return s
}

// member adds the lines of one member. Only a text that cannot be taken for another value is
// written without quotation marks.
func (c *call) member(name string, raw json.RawMessage) {
	if s := decodeString(raw); isString(raw) && s != "" && s == strings.TrimSpace(s) && !json.Valid([]byte(s)) {
		c.value(name, "  ", s)
		return
	}
	var indented bytes.Buffer
	if json.Indent(&indented, raw, "", "  ") != nil {
		indented.Reset()
		indented.Write(raw)
	}
	c.value(name, "", indented.String())
}

// value adds a text behind its name. A text of several lines begins below the name.
func (c *call) value(name, indent, s string) {
	lines := strings.Split(s, "\n")
	var head []piece
	if name != "" {
		head = append(c.visible(name, "k"), piece{": ", "k"})
	}
	if name == "" || indent == "" || len(lines) == 1 {
		c.lines = append(c.lines, append(head, c.hosts(lines[0])...))
		lines = lines[1:]
	} else {
		c.lines = append(c.lines, head)
	}
	for _, line := range lines {
		var spans []piece
		if indent != "" {
			spans = []piece{{Text: indent}}
		}
		c.lines = append(c.lines, append(spans, c.hosts(line)...))
	}
}

// authority finds the part of an address between the scheme and the path.
var authority = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://([^\s/\\?#"'<>` + "`" + `|]+)`)

// hosts marks the hosts of the addresses in a line.
func (c *call) hosts(line string) (spans []piece) {
	at := 0
	for _, m := range authority.FindAllStringSubmatchIndex(line, -1) {
		from, to := m[2], m[3]
		if i := strings.LastIndex(line[from:to], "@"); i >= 0 {
			from += i + 1
			c.warn("An address has a user name before @. The request goes to the host behind it: %s.", text.Escape(line[from:to]))
		}
		host := line[from:to]
		if u, err := url.Parse("https://" + host); err != nil || !isASCII(host) || strings.Contains(u.Hostname(), "xn--") {
			c.warn("The host %s has letters outside of ASCII, which can look like others.", text.Escape(host))
		}
		spans = append(spans, c.visible(line[at:from], "")...)
		spans = append(spans, c.visible(host, "host")...)
		at = to
	}
	return append(spans, c.visible(line[at:], "")...)
}

func (c *call) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(c.warnings, w) {
		c.warnings = append(c.warnings, w)
	}
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' }) }

// visible splits a text into what can be seen and the escapes of what cannot.
func (c *call) visible(s, class string) (spans []piece) {
	rest := strings.ToValidUTF8(s, "\uFFFD")
	for rest != "" {
		n := strings.IndexFunc(rest, text.IsInvisible)
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			spans = append(spans, piece{rest[:n], class})
			rest = rest[n:]
			continue
		}
		r := []rune(rest)[0]
		if r != '\t' {
			c.escapes++
			if !slices.Contains(c.hidden, r) {
				c.hidden = append(c.hidden, r)
			}
		}
		size := len(string(r))
		spans = append(spans, piece{text.Escape(rest[:size]), "esc"})
		rest = rest[size:]
	}
	return spans
}

// hiddenNames are the names of the characters that attacks use most.
var hiddenNames = map[rune]string{
	'\u00a0': "no-break space", '\u00ad': "soft hyphen", '\u200b': "zero-width space", '\u200c': "zero-width non-joiner",
	'\u200d': "zero-width joiner",
	'\u200e': "left-to-right mark", '\u200f': "right-to-left mark", '\u202a': "left-to-right embedding", '\u202b': "right-to-left embedding",
	'\u202c': "end of direction", '\u202d': "left-to-right override", '\u202e': "right-to-left override", '\u2060': "word joiner",
	'\u2066': "left-to-right isolate", '\u2067': "right-to-left isolate", '\u2068': "first strong isolate", '\u2069': "end of isolate",
	'\ufeff': "byte order mark",
	'\r':     "carriage return", '\x1b': "escape",
}

// describe returns the warning about characters that cannot be seen.
func (c *call) describe() string {
	var names []string
	for _, r := range c.hidden[:min(len(c.hidden), 4)] {
		name := text.Escape(string(r))
		if known := hiddenNames[r]; known != "" {
			name += " (" + known + ")"
		}
		names = append(names, name)
	}
	if len(c.hidden) > 4 {
		names = append(names, "and others")
	}
	what := "1 character that cannot be seen is"
	if c.escapes > 1 {
		what = fmt.Sprintf("%d characters that cannot be seen are", c.escapes)
	}
	return what + " written out: " + strings.Join(names, ", ") + ". They can make text read differently from what is sent."
}

// inline renders a short text of a model or a tool on one line.
func inline(s string) []piece { return (&call{}).visible(s, "") }
