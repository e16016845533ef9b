package skill

import (
	"strconv"
	"strings"
)

// isWholeNumber reports whether a JSON number is an integer, in any notation and of any size: 3,
// 3.0 and 30e-1 are integers. It computes nothing, so that 1e999999999 costs nothing.
func isWholeNumber(number string) bool {
	mantissa, exponent := strings.TrimPrefix(number, "-"), "0"
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, exponent = mantissa[:i], mantissa[i+1:]
	}
	digits, fraction, _ := strings.Cut(mantissa, ".")
	significant := strings.TrimRight(digits+fraction, "0")
	if significant == "" {
		return true // zero, with any exponent
	}
	// The last significant digit is at 10^(exponent - behind).
	behind := len(significant) - len(digits)
	e, err := strconv.Atoi(exponent)
	if err != nil { // it exceeds an int: only the sign matters
		return !strings.HasPrefix(exponent, "-")
	}
	return e >= behind
}
