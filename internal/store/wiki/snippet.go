package wiki

import (
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/search"
)

const (
	mark         = "\ue000" // stands before and after a word of the query
	snippetWords = 45
	snippetBegin = 6 // words before the first one of the query
)

// word is a word of a passage.
type word struct {
	text  string
	match bool
}

// snippetOf returns the part of a passage with most words of the query. marked is the passage with
// blanks instead of punctuation, and with marks around the words.
func snippetOf(body, marked string) []search.Piece {
	words := markedWords(body, marked)
	first, most := 0, 0
	for i := range words {
		if !words[i].match {
			continue
		}
		n := 0
		for _, w := range words[i:min(len(words), i+snippetWords-snippetBegin)] {
			if w.match {
				n++
			}
		}
		if n > most {
			first, most = i, n
		}
	}
	first = max(0, min(first-snippetBegin, len(words)-snippetWords))
	last := min(len(words), first+snippetWords)
	var pieces []search.Piece
	add := func(text string, match bool) {
		if n := len(pieces); n > 0 && pieces[n-1].Match == match {
			pieces[n-1].Text += text
			return
		}
		pieces = append(pieces, search.Piece{Text: text, Match: match})
	}
	if first > 0 {
		add("… ", false)
	}
	for i, w := range words[first:last] {
		if i > 0 {
			add(" ", false)
		}
		add(w.text, w.match)
	}
	if last < len(words) {
		add(" …", false)
	}
	return pieces
}

// markedWords splits a passage at blanks.
func markedWords(body, marked string) (words []word) {
	inside := insideMarks(body, marked)
	var text strings.Builder
	match := false
	flush := func() {
		if text.Len() > 0 {
			words = append(words, word{text.String(), match})
		}
		text.Reset()
		match = false
	}
	n := 0
	for _, r := range body {
		if unicode.IsSpace(r) {
			flush()
		} else {
			text.WriteRune(r)
			match = match || n < len(inside) && inside[n]
		}
		n++
	}
	flush()
	return words
}

// insideMarks reports for each character of a passage whether it is in a word of the query. It
// reports none if the marked text does not fit.
func insideMarks(body, marked string) (inside []bool) {
	if strings.Contains(body, mark) {
		return nil
	}
	in := false
	for _, r := range marked {
		if string(r) == mark {
			in = !in
			continue
		}
		inside = append(inside, in)
	}
	return inside
}
