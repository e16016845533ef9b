package render

import (
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/text"
)

// Argument is what a model wrote into a call, such as a path, as it may stand in a sentence of
// ours: at most n characters of it, between quotation marks, which nothing in it can end, with
// what cannot be seen written out. A plain name or address has no need of them.
func Argument(words string, n int) string {
	shown := text.Prefix(words, n)
	rest := text.Truncate(words, n)[len(shown):]
	if plain(shown) {
		return shown + rest
	}
	return Exact(strconv.Quote(shown)) + rest
}

// plain reports whether a text is one word that looks like nothing but a name, a path or an
// address. Other scripts than ASCII's are left out: some have no spaces between words, some run
// from right to left, and some have letters that look like marks.
func plain(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-*@:+=~%?&#$") == ""
}
