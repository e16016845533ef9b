package turn

import (
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/event"
)

// checkLog checks the stored records of a running turn before another attempt continues it: they
// have not ended the turn, their ordinals rise, and so do the epochs of its attempts, up to this
// one. The statements that write events keep these rules. If one is broken all the same, the turn
// must not continue from this log.
func checkLog(evs []event.Event, epoch int64) error {
	var ord, last int64
	for _, ev := range evs {
		if ev.Ord <= ord {
			return fmt.Errorf("event %d follows event %d", ev.Ord, ord)
		}
		ord = ev.Ord
		switch ev.Kind {
		case event.KindDone:
			return fmt.Errorf("event %d is the done of a running turn", ev.Ord)
		case event.KindStarted:
			var began event.Started
			if err := json.Unmarshal(ev.Data, &began); err != nil {
				return fmt.Errorf("read event %d: %w", ev.Ord, err)
			}
			if began.Epoch <= last || began.Epoch > epoch {
				return fmt.Errorf("event %d begins epoch %d after %d, in epoch %d", ev.Ord, began.Epoch, last, epoch)
			}
			last = began.Epoch
		}
	}
	return nil
}
