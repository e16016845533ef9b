// Package words applies the words by which the user of a chat controls a turn: `allow CODE`,
// `deny CODE`, `continue` and `cancel`. Chat clients have no other way to answer a question.
//
// It promises: only a code decides an approval, in the chat or by the key that was asked; a word
// that decides nothing is answered with the reason; the text of the assistant decides nothing.
package words

import (
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/session"
)

// The words by which a user controls a turn.
const (
	allow = "allow"
	deny  = "deny"
	goOn  = "continue"
	stop  = "cancel"
)

// Word is a command of the user for a turn; the zero value means none.
type Word struct {
	kind   string
	code   session.Code // the code of an approval
	coded  bool         // the word has a code
	reason string       // the reason of a denial
}

// punctuation may surround a word or its code.
const punctuation = ".,:;!?`'\"()[]{}<>*_"

// Parse parses a message as a word: `allow CODE`, `deny CODE [reason]`, `continue [CODE]` or
// `cancel`. A message with only the word, or with other text in place of the code, is a word
// without a code. A longer message is not a word.
func Parse(text string) Word {
	first, rest := cutField(text)
	said := Word{kind: strings.ToLower(first)}
	switch said.kind {
	case allow, deny, goOn:
	case stop:
		if rest == "" {
			return said
		}
		return Word{}
	default:
		return Word{}
	}
	code, behind := cutField(rest)
	said.code, said.coded = session.ParseCode(code)
	switch {
	case !said.coded && (behind != "" || said.kind == goOn && code != ""):
		return Word{}
	case said.kind == deny:
		said.reason = behind
	case behind != "" && said.kind == allow: // it might restrict what is allowed
		said.code, said.coded = 0, false
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

// Continue is the word that reads on.
func Continue() Word { return Word{kind: goOn} }

// IsNone reports whether a message is not a word.
func (w Word) IsNone() bool { return w.kind == "" }
