package turn

import (
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// tenure is the reaper's record of a running turn. Its times are on this process's monotonic clock:
// when PostgreSQL's clock is set, a worker must neither lose its turn nor keep it for longer.
type tenure struct {
	lease    time.Time // as stored: a new value is a renewal
	until    time.Time // when the lease ends
	overtime time.Time // since when the turn has run too long, or zero
	round    int       // the newest round that found the turn
}

// tenures are the records of all running turns.
type tenures struct {
	turns map[uuid.UUID]tenure
	round int
	grace time.Duration // time in which every living worker renews its lease
}

// isOver records a turn as the reaper's round found it, and reports whether its worker has lost it:
// the lease has ended, or the turn runs too long. After a step of the clock both can be wrong until
// the worker renews its lease.
func (all *tenures) isOver(t db.TurnsRunningRow) bool {
	now := time.Now()
	seen, known := all.turns[t.ID]
	if !known || !seen.lease.Equal(t.LeaseUntil) {
		left := time.Duration(t.LeaseSeconds * float64(time.Second))
		seen.lease, seen.until = t.LeaseUntil, now.Add(max(left, all.grace))
	}
	switch {
	case !t.Overtime:
		seen.overtime = time.Time{}
	case seen.overtime.IsZero():
		seen.overtime = now
	}
	seen.round = all.round
	all.turns[t.ID] = seen
	return now.After(seen.until) || t.Overtime && now.Sub(seen.overtime) > all.grace
}

// endRound ends a round and forgets the turns that it did not find: they no longer run.
func (all *tenures) endRound() {
	for id, seen := range all.turns {
		if seen.round != all.round {
			delete(all.turns, id)
		}
	}
	all.round++
}
