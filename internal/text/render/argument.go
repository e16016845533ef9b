package render

import (
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/text"
)

// Argument renders a value that a model wrote into a call, such as a path, for a sentence of ours:
// at most n characters of it, in quotation marks that the value cannot end, with invisible
// characters escaped. A plain name or address is rendered without quotation marks.
func Argument(words string, n int) string {
	shown := text.Prefix(words, n)
	rest := ""
	if len(shown) < len(words) {
		rest = "…"
	}
	if isPlainName(shown) {
		return shown + rest
	}
	return Exact(strconv.Quote(shown)) + rest
}

// isPlainName reports whether a text is one word that can only be a name, a path or an address. It
// accepts only ASCII: some scripts have no spaces between words, some run from right to left, and
// some have letters that look like marks.
func isPlainName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-*@:+=~%?&#$") == ""
}
