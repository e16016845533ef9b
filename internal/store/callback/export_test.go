package callback

import (
	"time"

	"github.com/parley-server/parley/internal/egress"
)

// Hurry shortens the time that receivers have to respond.
func (s *Store) Hurry(d time.Duration) { s.client = s.guard.Client(egress.Limits{Time: d}) }

// Schedule is the pauses after each failed attempt.
var Schedule = schedule

var Wrap = wrapBody

// Reason names the failure of a request.
var Reason = failureReason
