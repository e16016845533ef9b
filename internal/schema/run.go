package schema

import (
	"fmt"
	"math"

	"github.com/parley-server/parley/internal/text"
)

// run checks one value. It has a budget of steps; the findings of an exhausted run are meaningless.
type run struct {
	steps     int
	frames    int
	exhausted bool
}

func (r *run) spendSteps(steps int) bool {
	r.steps -= steps
	r.exhausted = r.exhausted || r.steps < 0
	return !r.exhausted
}

// finding is a violation with a pointer that is not yet formatted.
type finding struct {
	at      *place
	message string
}

// maxMessage is the maximum length of a finding in characters: it can quote the value.
const maxMessage = 200

// findings is a list of at most maxViolations.
type findings struct {
	run  *run
	list []finding
}

func (f *findings) addFinding(at *place, format string, args ...any) {
	if f.run.spendSteps(4) && len(f.list) < maxViolations {
		f.list = append(f.list, finding{at, text.Truncate(fmt.Sprintf(format, args...), maxMessage)})
	}
}

func (f *findings) add(more []finding) {
	more = more[:min(len(more), maxViolations-len(f.list))]
	if len(more) > 0 && f.run.spendSteps(len(more)) {
		f.list = append(f.list, more...)
	}
}

// isFull reports whether further checks cannot add findings.
func (f *findings) isFull() bool { return f.run.exhausted || len(f.list) == maxViolations }

// names are the members of an object that a schema has evaluated; nil if no keyword needs them.
type names map[string]bool

func (s names) add(name string) {
	if s != nil {
		s[name] = true
	}
}

// checkValue returns the violations of a value, and adds the evaluated members to seen.
func (r *run) checkValue(n *node, value any, at *place, seen names) []finding {
	r.frames++
	defer func() { r.frames-- }()
	r.exhausted = r.exhausted || r.frames > maxFrames
	if !r.spendSteps(1 + n.size) {
		return nil
	}
	bad := &findings{run: r}
	if n.never {
		bad.addFinding(at, "no value is allowed here")
		return bad.list
	}
	if n.types != 0 && n.types&kindOf(value) == 0 {
		bad.addFinding(at, "type should be %s, got %s", n.types, kindOf(value))
		return bad.list // further findings would only repeat it
	}
	if !n.isListed(value) {
		bad.addFinding(at, "should be %s", describeChoice(n.oneOfs))
	}
	if n.engine != nil && r.spendSteps(engineSteps+byteLength(value)/64) {
		for _, message := range n.engine.checkValue(value) {
			bad.addFinding(at, "%s", message)
		}
	}
	own := seen
	if n.unevaluated != nil {
		own = names{}
	}
	switch value := value.(type) {
	case string:
		r.checkText(bad, n, value, at)
	case float64:
		if n.multiple != 0 && math.Mod(value, n.multiple) != 0 {
			bad.addFinding(at, "must be a multiple of %v", n.multiple)
		}
	case []any:
		r.checkArray(bad, n, value, at)
	case map[string]any:
		r.checkObject(bad, n, value, at, own)
	}
	r.checkCombined(bad, n, value, at, own)
	if members, ok := value.(map[string]any); ok && n.unevaluated != nil {
		r.checkUnevaluated(bad, n, members, at, own)
		for name := range members {
			seen.add(name)
		}
	}
	return bad.list
}

// byteLength returns the length of a text, in bytes.
func byteLength(value any) int {
	s, _ := value.(string)
	return len(s)
}

func (r *run) checkText(bad *findings, n *node, value string, at *place) {
	if n.match != nil && r.matchPattern(n.match, value) && !n.match.matches(value) {
		bad.addFinding(at, "does not match the pattern %s", n.match.source)
	}
	if valid := formats[n.format]; valid != nil && r.spendSteps(byteLength(value)/16) && !valid(value) {
		bad.addFinding(at, "is no %s", n.format)
	}
}

// matchPattern matches a pattern and counts its steps.
func (r *run) matchPattern(p *pattern, text string) bool {
	return r.spendSteps(1 + len(text)*p.size/16)
}
