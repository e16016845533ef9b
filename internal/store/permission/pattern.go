package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// MaxPattern is the maximum length of a pattern, in bytes.
const MaxPattern = 500

// Pattern matches calls of one tool that need no approval: "bash(git diff *)". The zero value
// matches nothing.
type Pattern struct {
	tool string
	what matcher
}

// matcher is the part of a pattern between the parentheses.
type matcher interface {
	matches(input json.RawMessage) bool
	String() string // canonical: equal matchers have equal strings
}

// Parse parses a pattern, or fails with INVALID_ALLOWLIST_PATTERN, with the reason and the remedy.
func Parse(pattern string) (Pattern, error) {
	pattern = strings.TrimSpace(pattern)
	switch {
	case pattern == "":
		return Pattern{}, invalidPattern(newViolation("required", "A pattern names a tool and what it may do, for example bash(git diff *)."))
	case len(pattern) > MaxPattern:
		v := newViolation("max_length", fmt.Sprintf("A pattern has at most %d bytes.", MaxPattern))
		v.Expected = MaxPattern
		return Pattern{}, invalidPattern(v)
	case !text.IsPrintable(pattern):
		return Pattern{}, invalidPattern(newViolation("format",
			"A pattern is one line of printable ASCII: letters that look alike must not pass for each other."))
	}
	name, argument, open := strings.Cut(pattern, "(")
	t, known := tools[name]
	switch {
	case !known:
		return Pattern{}, invalidPattern(unknownTool(name))
	case t.parse == nil:
		return Pattern{}, invalidPattern(newViolation("enum", t.unmatched))
	case !open || !strings.HasSuffix(argument, ")"):
		v := newViolation("format",
			fmt.Sprintf("Say in parentheses what %s may do, for example %s. To allow everything, an administrator sets the tool's rule.",
				name, t.example))
		return Pattern{}, invalidPattern(v)
	}
	what, violations := t.parse(strings.TrimSuffix(argument, ")"))
	if len(violations) > 0 {
		return Pattern{}, invalidPattern(violations...)
	}
	return Pattern{tool: name, what: what}, nil
}

// Tool returns the tool of the pattern.
func (p Pattern) Tool() string { return p.tool }

// String returns the pattern as it is stored.
func (p Pattern) String() string {
	if p.what == nil {
		return ""
	}
	return p.tool + "(" + p.what.String() + ")"
}

// Matches reports whether the pattern covers a call. It never covers ambiguous input.
func (p Pattern) Matches(tool string, input json.RawMessage) bool {
	return p.what != nil && p.tool == tool && p.what.matches(input)
}

func invalidPattern(violations ...fault.Violation) *fault.Error {
	e := fault.Invalid(violations...)
	e.Code = fault.InvalidAllowlistPattern
	return e
}

func newViolation(rule, message string) fault.Violation {
	return fault.Violation{Param: "/allowlist_pattern", Rule: rule, Message: message}
}

func unknownTool(name string) fault.Violation {
	var matchable []string
	for tool, t := range tools {
		if t.parse != nil {
			matchable = append(matchable, tool)
		}
	}
	slices.Sort(matchable)
	v := newViolation("enum", "Patterns exist for "+strings.Join(matchable, ", ")+" only.")
	for _, tool := range matchable {
		v.Allowed = append(v.Allowed, tool)
	}
	if near := search.Nearest(name, matchable, 1); len(near) > 0 {
		v.Message += fmt.Sprintf(" Did you mean %s?", near[0])
		v.Suggestion = near[0]
	}
	return v
}
