// Package words applies the words by which the user of a chat controls a turn: `allow CODE`,
// `deny CODE`, `continue` and `cancel`. Chat clients have no other way to answer a question.
//
// It promises: only a code decides an approval, in the chat or by the key that was asked; a word
// that decides nothing is answered with the reason; the text of the assistant decides nothing.
package words

import "github.com/parley-server/parley/internal/server/request"

// The words by which a user controls a turn.
const (
	allow = request.Allow
	deny  = request.Deny
	goOn  = request.Continue
	stop  = request.Cancel
)

// Word is a command of the user for a turn.
type Word = request.Word

// Parse parses a message as a word.
func Parse(text string) Word { return request.ParseWord(text) }

// Continue is the word that reads on.
func Continue() Word { return Word{Kind: goOn} }
