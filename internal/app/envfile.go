package app

import (
	"fmt"
	"strings"
)

// envLine is one setting in a file.
type envLine struct {
	n           int
	name, value string
}

// parseEnvFile parses lines of NAME=value: with or without "export", with or without one pair of
// quotes around the value, and # comments on lines of their own. It expands nothing. After an
// invalid line it continues, and returns the first error.
func parseEnvFile(text string) ([]envLine, error) {
	var lines []envLine
	var bad error
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t\"'") {
			if bad == nil {
				bad = fmt.Errorf("line %d is not NAME=value", i+1)
			}
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		lines = append(lines, envLine{i + 1, name, value})
	}
	return lines, bad
}
