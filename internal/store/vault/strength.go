package vault

import (
	"bytes"
	"math"
)

// guessableBits is the entropy below which a value is guessable: eight random letters and digits
// are below it, and every value of up to 13 bytes.
const guessableBits = 50

// IsGuessable reports whether a value is short or has few different symbols, so that a program
// could print all candidates. A value has the entropy length × log2(different bytes), in bits.
//
// The mark in place of a value confirms a guess. Therefore a guessable value is searched only in
// the responses to requests that carried it, and not in other text.
func (v Value) IsGuessable() bool {
	plain := v.Reveal()
	var seen [256]bool
	different := 0
	for _, b := range plain {
		if !seen[b] {
			seen[b] = true
			different++
		}
	}
	return different < 2 || float64(len(plain))*math.Log2(float64(different)) < guessableBits
}

// HasLines reports whether a value contains a line end. Only the body of a request can carry it.
func (v Value) HasLines() bool { return bytes.ContainsAny(v.Reveal(), "\r\n") }
