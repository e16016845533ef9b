package agent

import "strconv"

// Which names a version: its number from 1, or one of the constants.
type Which int

const (
	Published Which = 0  // the version that runs
	Draft     Which = -1 // the draft
)

// ParseWhich parses a number, "draft" or "published".
func ParseWhich(s string) (w Which, ok bool) {
	switch s {
	case "draft":
		return Draft, true
	case "published":
		return Published, true
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return Which(n), err == nil && n > 0
}
