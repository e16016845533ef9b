package builtin

import (
	"fmt"
	"strconv"
	"strings"
)

// clause are the options that directives of text share.
type clause struct {
	size int     // bytes of a delta, 0 if there is none
	rate float64 // deltas a second, 0 is as fast as the reader can
}

// splitDeltas parses "5000 deltas of 12 bytes at 40/s"; both options may be absent.
func splitDeltas(arg string) (n int, o clause, err error) {
	fields := strings.Fields(arg)
	if len(fields) < 2 || fields[1] != "deltas" && fields[1] != "delta" {
		return 0, o, fmt.Errorf("how many deltas?")
	}
	if n, err = parseBetween(fields[0], 0, maxDeltas); err != nil {
		return 0, o, err
	}
	o, err = parseOptions(strings.Join(fields[2:], " "), 0)
	return n, o, err
}

// parseOptions parses "of 12 bytes" and "at 40/s", in any order.
func parseOptions(s string, rate float64) (o clause, err error) {
	o.rate = rate
	fields := strings.Fields(s)
	for len(fields) > 0 {
		switch {
		case fields[0] == "of" && len(fields) >= 3 && strings.TrimSuffix(fields[2], "s") == "byte":
			if o.size, err = parseBetween(fields[1], 1, maxSize); err != nil {
				return o, err
			}
			fields = fields[3:]
		case fields[0] == "at" && len(fields) >= 2:
			r, err := strconv.ParseFloat(strings.TrimSuffix(fields[1], "/s"), 64)
			if err != nil || !strings.HasSuffix(fields[1], "/s") || !(r >= 0 && r <= maxRate) || r > 0 && r < 0.001 {
				return o, fmt.Errorf("%q is no rate like 40/s", fields[1])
			}
			o.rate, fields = r, fields[2:]
		default:
			return o, fmt.Errorf("%q is not understood", fields[0])
		}
	}
	return o, nil
}

// parseBetween parses a whole number within limits.
func parseBetween(s string, least, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%.40q is no whole number from %d to %d", s, least, most)
	}
	return n, nil
}
