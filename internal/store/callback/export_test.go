package callback

import (
	"time"

	"github.com/parley-server/parley/internal/egress"
)

// Hurry makes receivers answer faster.
func (s *Store) Hurry(d time.Duration) { s.client = s.guard.Client(egress.Limits{Time: d}) }

// Schedule is the pause after each failed attempt.
var Schedule = schedule

var Wrap = wrapBody

// Reason names what went wrong on the way.
var Reason = reason
