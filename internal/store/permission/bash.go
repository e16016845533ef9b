package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

// words is a pattern of bash: the words of a command, and whether more operands may follow.
type words struct {
	argv []string
	rest bool
}

// parseBash parses the argument of bash(…).
func parseBash(argument string) (matcher, []fault.Violation) {
	command, rest := strings.Trim(argument, " "), false
	if command == "" || command == "*" || command == ":*" {
		return nil, []fault.Violation{newViolation("wildcard",
			"A pattern of bash begins with a program: bash(git diff *). To allow every command, an administrator sets the rule of bash.")}
	}
	for _, star := range []string{" *", ":*"} {
		if cut, ok := strings.CutSuffix(command, star); ok {
			command, rest = cut, true
			break
		}
	}
	argv, unclear := readCommand(command)
	if unclear != "" {
		message := "A pattern of bash is one simple command of literal words, but " + unclear + "."
		if strings.Contains(command, "*") {
			message += " A * stands alone, as the last word, and covers operands; anywhere else it is written in quotes and means itself."
		}
		return nil, []fault.Violation{newViolation("format", message)}
	}
	w := words{argv: argv, rest: rest}
	return w, w.patternViolations()
}

// patternViolations returns the reasons why a well-formed pattern would match more than it shows.
func (w words) patternViolations() (vs []fault.Violation) {
	if !w.rest {
		return vs
	}
	exact := words{argv: w.argv}.String()
	switch name := w.argv[0]; {
	case name == "git" && (len(w.argv) < 2 || !gitReads[w.argv[1]]):
		v := newViolation("wildcard", "A * after git needs one of these sub-commands first: "+strings.Join(sortedNames(gitReads),
			", ")+". Others run programs or change the configuration; write their command in full, without *.")
		v.Suggestion = "bash(git diff *)"
		vs = append(vs, v)
	case name != "git" && isIn(runners, name):
		v := newViolation("wildcard", fmt.Sprintf(
			"%s runs whatever its operands say, so * would allow everything. Write the command in full, without *.", name))
		if len(w.argv) > 1 {
			v.Suggestion = "bash(" + exact + ")"
		}
		vs = append(vs, v)
	case isIn(writers, name):
		v := newViolation("wildcard", fmt.Sprintf(
			"%s writes to the file that its operands say, so * would allow to write what other programs obey, such as .git/config. "+
				"Write the command in full, without *.", name))
		if len(w.argv) > 1 {
			v.Suggestion = "bash(" + exact + ")"
		}
		vs = append(vs, v)
	}
	if last := w.argv[len(w.argv)-1]; len(w.argv) > 1 && isOption(last) && !flags[last] {
		vs = append(vs, newViolation("wildcard", fmt.Sprintf(
			"It is unclear whether * would be an operand or the value of %s. Write the value, or -- before the *.", last)))
	}
	return vs
}

func (w words) String() string {
	quoted := make([]string, len(w.argv), len(w.argv)+1)
	for i, word := range w.argv {
		quoted[i] = quoteWord(word)
	}
	if w.rest {
		quoted = append(quoted, "*")
	}
	return strings.Join(quoted, " ")
}

func (w words) matches(input json.RawMessage) bool {
	argv := bashArgv(input)
	if len(argv) < len(w.argv) || !slices.Equal(argv[:len(w.argv)], w.argv) {
		return false
	}
	more := argv[len(w.argv):]
	return len(more) == 0 || w.rest && !slices.ContainsFunc(more, isOption)
}

// isOption reports whether a program may read a word as anything but an operand: an option, or a
// file of options.
func isOption(word string) bool {
	return word != "" && strings.ContainsRune("-+@", rune(word[0]))
}

// bashArgv returns the words of a bash call, or nothing if they are ambiguous.
func bashArgv(input json.RawMessage) []string {
	m, ok := decodeMembers(input, "command", "timeout_seconds")
	if !ok {
		return nil
	}
	command, ok := stringOf(m["command"])
	if !ok {
		return nil
	}
	argv, _ := readCommand(command)
	return argv
}

// suggestBash proposes open operands for read-only commands, or else the command itself.
func suggestBash(input json.RawMessage) matcher {
	argv := bashArgv(input)
	if argv == nil {
		return nil
	}
	first := len(argv)
	for first > 1 && !isOption(argv[first-1]) {
		first--
	}
	from := 1
	if argv[0] == "git" {
		from = 2
	}
	first = max(first, from)
	open := words{argv: argv[:min(first, len(argv))], rest: true}
	looks := looksOnly[argv[0]] || argv[0] == "git" && len(argv) > 1 && gitLooks[argv[1]]
	plain := !slices.ContainsFunc(argv[1:], func(word string) bool { return isOption(word) && !flags[word] })
	if looks && plain && len(argv) > from && len(open.patternViolations()) == 0 {
		return open
	}
	return words{argv: argv}
}
