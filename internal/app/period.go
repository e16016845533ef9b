package app

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Period is a length of time that can be given in days: 400d, 36h, 90m.
type Period time.Duration

const (
	day       = 24 * time.Hour
	maxPeriod = Period(36500 * day)
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Period) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		*p = Period(time.Duration(n) * day)
		return err
	}
	d, err := time.ParseDuration(string(text))
	*p = Period(d)
	return err
}

// String formats whole days as days.
func (p Period) String() string {
	if d := time.Duration(p); d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return time.Duration(p).String()
}
