package builtin

import (
	"fmt"
	"strings"
	"time"
)

// Script is a message of directives, for programs that generate them. The zero value is empty;
// every method returns the script with one more line.
type Script string

// Say adds n words at the ordinary pace.
func (s Script) Say(n int) Script { return s.Line("@say %d words", n) }

// Text adds n deltas of size bytes at a rate per second; rate 0 is as fast as possible.
func (s Script) Text(n, size int, rate float64) Script {
	return s.Line("@text %d deltas of %d bytes at %v/s", n, size, rate)
}

// Bench adds n stamped deltas of size bytes at a rate per second; Tally reads them.
func (s Script) Bench(n, size int, rate float64) Script {
	return s.Line("@bench %d deltas of %d bytes at %v/s", n, max(size, MinStamp), rate)
}

// Wait adds a pause.
func (s Script) Wait(d time.Duration) Script { return s.Line("@wait %v", d) }

// Call adds a tool call and ends the step. Input is a JSON object on one line.
func (s Script) Call(tool, input string) Script { return s.Line("@call %s %s", tool, input) }

// Line adds any line.
func (s Script) Line(format string, args ...any) Script {
	return s + Script(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")+"\n")
}

// String returns the message.
func (s Script) String() string { return string(s) }
