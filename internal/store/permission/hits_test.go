package permission_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/permission"
)

// TestUsesAreWrittenOnceAMinute: the first use is written at once, the following ones together.
func TestUsesAreWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	var h permission.Hits
	id, start := uuid.New(), time.Now()
	written, used := int64(0), int64(0)
	for second := range 150 {
		h.Add(id)
		used++
		counts, _ := h.Due(start.Add(time.Duration(second) * time.Second))
		if (counts != nil) != (second%60 == 0) {
			t.Errorf("second %d: %v", second, counts)
		}
		written += counts[id]
	}
	counts, _ := h.Due(start.Add(time.Hour))
	if written += counts[id]; written != used {
		t.Errorf("%d uses, %d written", used, written)
	}
	if counts, n := h.Due(start.Add(2 * time.Hour)); counts != nil || n != 0 {
		t.Errorf("%v are written again, %d entries stay in memory", counts, n)
	}
}
