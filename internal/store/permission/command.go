package permission

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/parley-server/parley/internal/text"
)

// maxCommand is the maximum length of a command that a pattern can match, in bytes.
const maxCommand = 8 << 10

// plainLetters are the characters allowed in a word outside quotes: bash expands none of them, at
// any place of a word.
const plainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@^_"

// commandName matches a program by its bare name. A name with a folder could be a file that the
// agent itself has written.
var commandName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

// readCommand returns the words that bash would pass on for an unambiguous command: one simple
// command of literal words on one line. unclear is the reason why the command is more than that, as
// the end of a sentence.
func readCommand(command string) (words []string, unclear string) {
	switch {
	case len(command) > maxCommand:
		return nil, "it is longer than 8 KiB"
	case !text.IsPrintable(command):
		return nil, "it is not one line of printable ASCII"
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil, "bash would not understand it"
	}
	if len(file.Stmts) != 1 {
		return nil, "it is not exactly one command"
	}
	s := file.Stmts[0]
	call, simple := s.Cmd.(*syntax.CallExpr)
	switch {
	case !simple, s.Negated, s.Background, s.Coprocess, s.Disown:
		return nil, "it is more than one simple command"
	case len(s.Redirs) > 0:
		return nil, "it redirects"
	case len(call.Assigns) > 0:
		return nil, "it sets variables"
	}
	end := 0
	for _, w := range call.Args {
		from, to := int(w.Pos().Offset()), int(w.End().Offset())
		if strings.Trim(command[end:from], " ") != "" {
			return nil, "there is something between its words"
		}
		word, unclear := literalWord(w)
		if unclear != "" {
			return nil, unclear
		}
		words, end = append(words, word), to
	}
	// Comments, semicolons and other text that the parser omits from the words.
	if strings.Trim(command[end:], " ") != "" {
		return nil, "there is something behind its last word"
	}
	if !commandName.MatchString(words[0]) || keyword[words[0]] {
		return nil, "its first word is no bare name of a program, and a file in a folder could become something else"
	}
	return words, ""
}

// literalWord returns a word without its quotes.
func literalWord(w *syntax.Word) (word, unclear string) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if i := strings.IndexFunc(p.Value, isSpecial); i >= 0 {
				return "", "it holds a " + p.Value[i:i+1] + " outside quotes"
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", "it holds $'…'"
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", `it holds $"…"`
			}
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "$`\\") {
					return "", "it holds a $, a ` or a \\ in double quotes"
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", "it holds something that bash would expand"
		}
	}
	return b.String(), ""
}

func isSpecial(r rune) bool { return !strings.ContainsRune(plainLetters, r) }

// quoteWord quotes a word so that readCommand returns it unchanged.
func quoteWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, isSpecial) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}
