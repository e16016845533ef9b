package main

import (
	"go/format"
	"slices"
	"testing"
)

// TestBugsCanBePlanted checks that the code still has the lines that each bug replaces.
func TestBugsCanBePlanted(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		changed, err := plantBugs("../../../..", slices.Concat(m.edits, m.beside))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for file, text := range changed {
			if _, err := format.Source([]byte(text)); err != nil {
				t.Errorf("%s: %s: %v", m.name, file, err)
			}
		}
	}
}
