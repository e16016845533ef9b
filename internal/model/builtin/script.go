package builtin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// The limits of a script: enough for every test, too little to fill the memory.
const (
	maxWords  = 1_000_000
	maxDeltas = 10_000_000
	maxSize   = 64 << 10
	maxRate   = 1_000_000
	maxWait   = time.Hour
	maxRepeat = 1000
	maxSteps  = 10_000
)

// directives maps the words after @ to their functions.
var directives = map[string]func(*script, string) error{
	"say":        (*script).directSay,
	"think":      (*script).directThink,
	"text":       (*script).directText,
	"bench":      (*script).directBench,
	"unicode":    (*script).directUnicode,
	"hostile":    (*script).directHostile,
	"wait":       (*script).directWait,
	"call":       (*script).directCall,
	"error":      (*script).directError,
	"refuse":     (*script).directRefuse,
	"length":     (*script).directLength,
	"usage":      (*script).directUsage,
	"structured": (*script).directStructured,
	"repeat":     nil, // the parser handles it: it applies to the next line
}

// program is the parsed form of a script.
type program struct {
	steps   []reply
	answers []string // answers in a schema, from @structured
}

// script is a program while it is parsed.
type script struct {
	program
	line int
	open bool // the last step accepts more
}

// parseScript makes a program, with one reply for each step, from a message. A message is a program
// if one of its lines begins with a directive; its other lines are comments. A mistake makes a
// program that explains it.
func parseScript(text string) (p program, ok bool) {
	if !strings.Contains(text, "@") {
		return p, false
	}
	s := &script{}
	var mistakes []string
	repeat := 1
	for line := range strings.SplitSeq(text, "\n") {
		s.line++
		name, arg, found := parseDirective(line)
		if !found {
			continue
		}
		run, known := directives[name]
		ok = ok || known
		var err error
		switch {
		case !known:
			err = fmt.Errorf("there is no directive @%s", name)
		case name == "repeat":
			if repeat, err = parseBetween(arg, 1, maxRepeat); err == nil {
				continue
			}
		default:
			for range repeat {
				if err = run(s, arg); err != nil {
					break
				}
				if len(s.steps) > maxSteps {
					err = fmt.Errorf("a script has at most %d steps", maxSteps)
					break
				}
			}
		}
		repeat = 1
		if err != nil {
			mistakes = append(mistakes, fmt.Sprintf("- line %d: %v", s.line, err))
		}
	}
	if len(mistakes) > 0 {
		p.steps = []reply{sayText("This script has mistakes; docs/guides/guide-model.md explains the directives.\n\n" +
			strings.Join(mistakes, "\n"))}
		return p, ok
	}
	return s.program, ok
}

// parseDirective parses a line like "@wait 10s".
func parseDirective(line string) (name, arg string, ok bool) {
	line, ok = strings.CutPrefix(strings.TrimSpace(line), "@")
	name, arg, _ = strings.Cut(line, " ")
	return name, strings.TrimSpace(arg), ok && name != ""
}

// currentStep returns the reply that the next directive adds to.
func (s *script) currentStep() *reply {
	if !s.open {
		s.steps = append(s.steps, reply{})
		s.open = true
	}
	return &s.steps[len(s.steps)-1]
}

func (s *script) addPart(p part) error {
	r := s.currentStep()
	r.parts = append(r.parts, p)
	return nil
}

func (s *script) directSay(arg string) error {
	counted, clauses, _ := strings.Cut(arg, " words")
	if n, err := strconv.Atoi(counted); err == nil && n >= 0 {
		o, err := parseOptions(clauses, wordsPerSecond)
		if err != nil || o.size != 0 {
			return fmt.Errorf("write @say 500 words, or @say 500 words at 40/s")
		}
		if n > maxWords {
			return fmt.Errorf("at most %d words", maxWords)
		}
		return s.addPart(part{n: n, delta: func(i int) string { return wordAt(i, n) }, rate: o.rate})
	}
	return s.addPart(splitWords(arg, wordsPerSecond))
}

// directThink adds a summary of reasoning, which is sent only if the request wants it.
func (s *script) directThink(arg string) error {
	p := splitWords(arg, wordsPerSecond)
	p.thought = true
	return s.addPart(p)
}

func (s *script) directText(arg string) error {
	n, o, err := splitDeltas(arg)
	if err != nil {
		return fmt.Errorf("%w; write @text 5000 deltas of 12 bytes at 40/s", err)
	}
	if o.size == 0 {
		o.size = 12
	}
	return s.addPart(part{n: n, delta: func(i int) string { return deltaAt(i, o.size) }, rate: o.rate})
}

func (s *script) directBench(arg string) error {
	n, o, err := splitDeltas(arg)
	if err == nil && o.size != 0 && o.size < MinStamp {
		err = fmt.Errorf("a stamped delta has at least %d bytes", MinStamp)
	}
	if err != nil {
		return fmt.Errorf("%w; write @bench 3000 deltas of 32 bytes at 20/s", err)
	}
	if o.size == 0 {
		o.size = MinStamp
	}
	return s.addPart(part{n: n, delta: func(i int) string { return stampDeltas(i, o.size, time.Now()) }, rate: o.rate, stamped: o.size})
}

func (s *script) directUnicode(string) error { return s.addPart(splitWords(Unicode, wordsPerSecond)) }

func (s *script) directHostile(string) error { return s.addPart(splitWords(Hostile, wordsPerSecond)) }

func (s *script) directWait(arg string) error {
	d, err := time.ParseDuration(arg)
	if err != nil || d < 0 || d > maxWait {
		return fmt.Errorf("write @wait 10s; at most an hour")
	}
	return s.addPart(part{wait: d})
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,64}$`)

// directCall ends the step: the next step has the results.
func (s *script) directCall(arg string) error {
	r := s.currentStep()
	for arg != "" {
		name, rest, _ := strings.Cut(arg, " ")
		if !toolName.MatchString(name) {
			return fmt.Errorf("%.70q is no name of a tool", name)
		}
		rest = strings.TrimSpace(rest)
		input := ""
		if strings.HasPrefix(rest, "{") {
			var object json.RawMessage
			dec := json.NewDecoder(strings.NewReader(rest))
			if dec.Decode(&object) == nil {
				input, rest = string(object), strings.TrimSpace(rest[dec.InputOffset():])
			} else {
				input, rest = rest, "" // as a model does that writes broken JSON
			}
		}
		r.calls = append(r.calls, event.ToolCall{Tool: name, Input: model.Input(input)})
		arg = rest
	}
	if len(r.calls) == 0 {
		return fmt.Errorf(`write @call wiki_read {"page":"onboarding"}`)
	}
	s.open = false
	return nil
}

func (s *script) directError(arg string) error {
	fields := strings.Fields(arg)
	codes := []event.Code{event.ModelError, event.ModelOverloaded, event.ContentRefused}
	if len(fields) == 0 || !slices.Contains(codes, event.Code(fields[0])) || len(fields) > 1 && fields[1] != "once" {
		return fmt.Errorf("write @error model_error, model_overloaded or content_refused, and once behind it if it shall pass")
	}
	fail := &model.Error{Code: event.Code(fields[0]), Message: "The script asked for this failure.",
		Retryable: fields[0] == string(event.ModelOverloaded)}
	p := part{fail: fail}
	if len(fields) > 1 {
		fail.Retryable, p.once = true, s.line
	}
	return s.addPart(p)
}

func (s *script) directRefuse(string) error {
	s.currentStep().stop = model.StopRefused
	s.open = false
	return nil
}

func (s *script) directLength(string) error {
	s.currentStep().stop = model.StopLength
	s.open = false
	return nil
}

func (s *script) directStructured(arg string) error {
	if arg == "" {
		return fmt.Errorf(`write @structured {"answer":42}, or @structured none`)
	}
	s.answers = append(s.answers, arg)
	return nil
}

func (s *script) directUsage(arg string) error {
	var u model.Usage
	if n, err := fmt.Sscanf(arg, "%d %d", &u.InputTokens, &u.OutputTokens); n != 2 || err != nil || u.InputTokens < 0 || u.OutputTokens < 0 {
		return fmt.Errorf("write @usage 100 50: tokens in, tokens out")
	}
	s.currentStep().usage = &u
	return nil
}
