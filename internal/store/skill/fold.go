package skill

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxName is the maximum length of a name in characters.
const MaxName = 64

var (
	folded  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	written = regexp.MustCompile(`^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$`)
)

// Fold returns the form in which names are compared: it ignores case, and treats _ as -. Two names
// are one skill's if their folds are equal. ok is false for an invalid name: after NFKC a name is 1
// to 64 ASCII letters and digits, with single hyphens between them.
func Fold(name string) (fold string, ok bool) {
	if len(name) > utf8Max*MaxName || strings.ContainsFunc(name, isDisguised) {
		return "", false
	}
	fold = strings.ReplaceAll(strings.ToLower(norm.NFKC.String(name)), "_", "-")
	if len(fold) > MaxName || !folded.MatchString(fold) {
		return "", false
	}
	return fold, true
}

// utf8Max is the length of the longest character that can become one of ASCII.
const utf8Max = 4

// isDisguised reports whether r is a non-ASCII letter with an ASCII letter as its other case: the
// Kelvin sign, the long s, i with and without its dot. Only some comparisons treat them as k, s and
// i, so they are not allowed in names.
func isDisguised(r rune) bool {
	return r > unicode.MaxASCII && (unicode.ToLower(r) <= unicode.MaxASCII || unicode.ToUpper(r) <= unicode.MaxASCII)
}
