package search

import (
	"iter"
	"strings"
	"unicode"
)

// Terms returns the words of a text that carry meaning, stemmed, in their order
// and with their repetitions. "last_event_id" and "Last-Event-ID" are the same
// three terms.
func Terms(text string) []string {
	words := Words(text)
	terms := words[:0]
	for _, w := range words {
		terms = append(terms, Stem(w))
	}
	return terms
}

// Words returns the words of a text that carry meaning, in lower case.
func Words(text string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), isBoundary) {
		w = strings.TrimSuffix(strings.Trim(strings.ReplaceAll(w, "’", "'"), "'"), "'s")
		if isASCII(w) {
			if w != "" && !stop[w] {
				words = append(words, w)
			}
			continue
		}
		for part, isRun := range splitRuns(w) {
			switch {
			case isRun:
				words = append(words, pairsOf(part)...)
			case !stop[part]:
				words = append(words, part)
			}
		}
	}
	return words
}

// splitRuns yields the parts of a word that are runs of characters without blanks between words, and
// the parts between them.
func splitRuns(w string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		begin, was := 0, false
		for i, r := range w {
			is := isRunCharacter(r)
			if i > begin && is != was {
				if !yield(w[begin:i], was) {
					return
				}
				begin = i
			}
			was = is
		}
		if w != "" {
			yield(w[begin:], was)
		}
	}
}

// pairsOf returns the pairs of adjacent characters of a run, as the full text of PostgreSQL has them:
// 東京都 is 東京 京都. A single character is itself.
func pairsOf(run string) (pairs []string) {
	characters := []rune(run)
	if len(characters) == 1 {
		return []string{run}
	}
	for i := range len(characters) - 1 {
		pairs = append(pairs, string(characters[i:i+2]))
	}
	return pairs
}

// isRunCharacter reports whether a character belongs to Chinese, Japanese or Korean, which are written
// without blanks. The function run_characters of the database has the same ones.
func isRunCharacter(r rune) bool {
	return r >= 0x3005 && r <= 0x3007 || r >= 0x3040 && r <= 0x30fa || r >= 0x30fc && r <= 0x30ff || r >= 0x3400 && r <= 0x4dbf ||
		r >= 0x4e00 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7af || r >= 0xf900 && r <= 0xfaff || r >= 0xff66 && r <= 0xff9f ||
		r >= 0x20000 && r <= 0x2fa1f
}

func isBoundary(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && r != '\'' && r != '’'
}

// Stem removes the commonest English endings from a word in lower case, so that resume, resumes,
// resumed and resuming become equal. It never returns fewer than three letters, and keeps short
// words unchanged.
func Stem(w string) string {
	if len(w) <= 3 || !isASCII(w) {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	if base, ok := strings.CutSuffix(w, "ing"); ok && len(base) >= 3 && hasVowel(base) {
		w = undouble(base)
	} else if base, ok := strings.CutSuffix(w, "ed"); ok && len(base) >= 3 && hasVowel(base) {
		w = undouble(base)
	}
	if base, ok := strings.CutSuffix(w, "e"); ok && len(base) >= 3 {
		w = base
	}
	if base, ok := strings.CutSuffix(w, "iz"); ok && len(base) >= 3 {
		w = base + "is"
	}
	return w
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func hasVowel(s string) bool { return strings.ContainsAny(s, "aeiouy") }

// undouble removes the doubled letter of "cancelled" and "stopping".
func undouble(s string) string {
	n := len(s)
	if n < 4 || s[n-1] != s[n-2] || strings.ContainsRune("aeiouysz", rune(s[n-1])) {
		return s
	}
	return s[:n-1]
}

// stop are the words that carry no meaning for a search.
var stop = func() map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(`
a about after again all also am an and any anybody anyone are as ask at be because been before being both but by
can cannot can't could did do does doesn't doing don't down each few for from further get gets getting give gives go
had happen happens has have having he her here hers him his how i i'd i'll i'm i've if in into is isn't it its itself just know let let's long
many may me mean means might more most much must my myself need needs no nor not now of off on once only or other our ours out over own
please same say says shall she should so some something such take tell than that the their them then there these they
thing things this those through to too under until up us use used uses using very want was we were what when where which
while who whom whose why will with would you your yours`) {
		set[w] = true
	}
	return set
}()
