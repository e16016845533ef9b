package permission

import (
	"time"

	"github.com/google/uuid"
)

// Argv is what the engine reads of a command; nil where there is doubt.
func Argv(command string) []string {
	words, _ := readCommand(command)
	return words
}

// Looks are the programs that only look.
func Looks() []string { return sortedNames(looksOnly) }

// Hits counts uses, at a time of the test's own.
type Hits struct{ hits }

// Add counts one use.
func (h *Hits) Add(id uuid.UUID) { h.addHit(id) }

// Due takes what is to be written, and tells how many entries are remembered.
func (h *Hits) Due(now time.Time) (counts map[uuid.UUID]int64, remembered int) {
	return h.dueHits(now), len(h.entries)
}
