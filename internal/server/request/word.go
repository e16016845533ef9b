package request

import (
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/session"
)

// The words by which a user controls a turn.
const (
	Allow    = "allow"
	Deny     = "deny"
	Continue = "continue"
	Cancel   = "cancel"
)

// Word is a command of the user for a turn; the zero value means none.
type Word struct {
	Kind   string
	Code   session.Code // the code of an approval
	Coded  bool         // the word has a code
	Reason string       // the reason of a denial
}

// punctuation may surround a word or its code.
const punctuation = ".,:;!?`'\"()[]{}<>*_"

// ParseWord parses a message as a word: `allow CODE`, `deny CODE [reason]`, `continue [CODE]` or
// `cancel`. A message with only the word, or with other text in place of the code, is a word
// without a code. A longer message is not a word.
func ParseWord(text string) Word {
	first, rest := cutField(text)
	said := Word{Kind: strings.ToLower(first)}
	switch said.Kind {
	case Allow, Deny, Continue:
	case Cancel:
		if rest == "" {
			return said
		}
		return Word{}
	default:
		return Word{}
	}
	code, behind := cutField(rest)
	said.Code, said.Coded = session.ParseCode(code)
	switch {
	case !said.Coded && (behind != "" || said.Kind == Continue && code != ""):
		return Word{}
	case said.Kind == Deny:
		said.Reason = behind
	case behind != "" && said.Kind == Allow: // it might restrict what is allowed
		said.Code, said.Coded = 0, false
	case behind != "":
		return Word{}
	}
	return said
}

// cutField returns the first field of a text without punctuation, and the rest of the text.
func cutField(text string) (field, rest string) {
	text = strings.TrimSpace(text)
	i := strings.IndexFunc(text, unicode.IsSpace)
	if i < 0 {
		i = len(text)
	}
	rest = strings.TrimSpace(text[i:])
	if strings.Trim(rest, punctuation) == "" {
		rest = ""
	}
	return strings.Trim(text[:i], punctuation), rest
}

// IsNone reports whether a message is not a word.
func (w Word) IsNone() bool { return w.Kind == "" }
