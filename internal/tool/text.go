package tool

import "unicode"

// OneLine makes what a model wrote fit into a line of at most n characters.
func OneLine(text string, n int) string {
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case r == '\n' || r == '\t':
			runes[i] = ' '
		case !unicode.IsPrint(r):
			runes[i] = '\uFFFD'
		}
	}
	if len(runes) > n {
		runes = append(runes[:n-1], '…')
	}
	return string(runes)
}
