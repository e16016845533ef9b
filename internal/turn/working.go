package turn

import (
	"errors"
	"time"

	"github.com/riverqueue/river"
)

// idleLimit is how long a working process can be without a successful fetch, or without a
// successful step of its reaper or reading of the pulse. Each of the two happens at least once in
// two seconds.
const idleLimit = 10 * time.Second

// The reasons why a process does not run turns.
var (
	errNotFetching = errors.New("no jobs were fetched for 10 seconds")
	errNotReaping  = errors.New("no step of the reaper succeeded for 10 seconds")
)

// Working returns an error if this process does not run turns as it should: nothing fetches their
// jobs although workers are free, or nothing reclaims the turns of dead workers. It does not query
// the database.
func (s *Service) Working() error {
	if s.cfg.Workers > 0 && s.busy.Load() < int64(min(s.cfg.Workers, river.QueueNumWorkersMax)) && isLongAgo(s.fetched.Load()) {
		return errNotFetching
	}
	if isLongAgo(s.reaped.Load()) {
		return errNotReaping
	}
	return nil
}

func isLongAgo(nanoseconds int64) bool {
	return time.Since(time.Unix(0, nanoseconds)) > idleLimit
}
