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

// word is a word of a passage, or a character of a run.
type word struct {
	text  string
	match bool
	joint bool // follows the word before it without a blank
}

// snippetOf returns the part of a passage with most words of the query. marked is the passage with
// blanks instead of punctuation, and with marks around the words. runs are parts of runs that match,
// too.
func snippetOf(body, marked string, runs []string) []search.Piece {
	words := markedWords(body, marked, runs)
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
		if i > 0 && !w.joint {
			add(" ", false)
		}
		add(w.text, w.match)
	}
	if last < len(words) {
		add(" …", false)
	}
	return pieces
}

// markedWords splits a passage at blanks, and at each character of a run.
func markedWords(body, marked string, runs []string) (words []word) {
	inside := insideMarks(body, marked)
	matches := insideRuns(body, runs)
	var text strings.Builder
	match, joint := false, false
	flush := func(next bool) {
		if text.Len() > 0 {
			words = append(words, word{text.String(), match, joint})
			joint = next
		} else {
			joint = joint && next
		}
		text.Reset()
		match = false
	}
	n := 0
	for at, r := range body {
		switch {
		case unicode.IsSpace(r):
			flush(false)
		case isRunRune(r):
			flush(true)
			text.WriteRune(r)
			match = matches[at]
			flush(true)
		default:
			text.WriteRune(r)
			match = match || n < len(inside) && inside[n]
		}
		n++
	}
	flush(false)
	return words
}

// insideRuns returns where in a passage a character of a run matches.
func insideRuns(body string, runs []string) map[int]bool {
	inside := make(map[int]bool)
	for _, run := range runs {
		for at := 0; ; {
			i := strings.Index(body[at:], run)
			if i < 0 {
				break
			}
			for j := range run {
				inside[at+i+j] = true
			}
			at += i + len(run)
		}
	}
	return inside
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
