package openai

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

// word is a command of the user for a turn; the zero value means none.
type word struct {
	kind   string
	code   session.Code // the code of an approval
	coded  bool         // the word has a code
	reason string       // the reason of a denial
}

// punctuation may surround a word or its code.
const punctuation = ".,:;!?`'\"()[]{}<>*_"

// parseWord parses a message as a word: `allow CODE`, `deny CODE [reason]`, `continue [CODE]` or
// `cancel`. A message with only the word, or with other text in place of the code, is a word
// without a code. A longer message is not a word.
func parseWord(text string) word {
	first, rest := cutField(typed(text))
	said := word{kind: strings.ToLower(first)}
	switch said.kind {
	case allow, deny, goOn:
	case stop:
		if rest == "" {
			return said
		}
		return word{}
	default:
		return word{}
	}
	code, behind := cutField(rest)
	said.code, said.coded = session.ParseCode(code)
	switch {
	case !said.coded && (behind != "" || said.kind == goOn && code != ""):
		return word{}
	case said.kind == deny:
		said.reason = behind
	case behind != "" && said.kind == allow: // it might restrict what is allowed
		said.code, said.coded = 0, false
	case behind != "":
		return word{}
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
