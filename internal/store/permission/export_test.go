package permission

import (
	"time"

	"github.com/google/uuid"
)

// Argv returns the words of a command as the engine reads them; nil if in doubt.
func Argv(command string) []string {
	words, _ := readCommand(command)
	return words
}

// Looks returns the read-only programs.
func Looks() []string { return sortedNames(looksOnly) }

// Hits counts uses, at a time chosen by the test.
type Hits struct{ hits }

// Add counts one use.
func (h *Hits) Add(id uuid.UUID) { h.addHit(id) }

// Due returns the counts to be written and the number of remembered entries.
func (h *Hits) Due(now time.Time) (counts map[uuid.UUID]int64, remembered int) {
	return h.dueHits(now), len(h.entries)
}
