package turn

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/fault"
)

const (
	// DefaultQueue is the number of messages that may wait for admission.
	DefaultQueue = 1000
	// AdmissionWait is the maximum time that a message waits for admission.
	AdmissionWait = 15 * time.Second
	// defaultStartTimeout is how long storing a message may take after its admission.
	defaultStartTimeout = 3 * time.Second
)

// groupPlaces lets one workspace fill a transaction of session.Store.Begin.
const groupPlaces = 85

// admission limits how many messages this process stores at once, so that a burst cannot take all
// connections of the pool from running turns and readers. Further messages wait without a
// connection and are admitted fairly among workspaces. A message that is not admitted leaves
// nothing in the database.
type admission struct {
	alone   *fair.Places // for messages with their own transaction: half of the connections
	grouped *fair.Places // for plain messages, which share transactions
	waiting atomic.Int64
	queue   int64
}

func newAdmission(connections int32, queue int) *admission {
	return &admission{alone: fair.New(max(2, int(connections)/2)), grouped: fair.New(groupPlaces), queue: int64(cmp.Or(queue, DefaultQueue))}
}

// acquirePlace waits for admission. It fails with UNAVAILABLE if too many messages already wait, or
// if this one has waited too long.
func (a *admission) acquirePlace(ctx context.Context, req Request) (leave func(), err error) {
	places, workspace := a.alone, req.Workspace.ID
	if req.isPlain() {
		places = a.grouped
	}
	if leave, ok := places.TryAcquire(workspace); ok {
		return leave, nil
	}
	if a.waiting.Add(1) > a.queue {
		a.waiting.Add(-1)
		return nil,
			overloadedError(
				"%d messages are waiting to be stored, which is the limit of this server. Nothing was stored. Send the message again.", a.queue)
	}
	defer a.waiting.Add(-1)
	bounded, cancel := context.WithTimeout(ctx, AdmissionWait)
	defer cancel()
	leave, err = places.Acquire(bounded, workspace)
	if err != nil && ctx.Err() == nil {
		err = overloadedError("The message waited %d seconds to be stored behind others. Nothing was stored. Send it again.",
			int(AdmissionWait.Seconds()))
	}
	return leave, err
}

// overloadedError returns the fault of a server that has more messages to store than it can.
func overloadedError(format string, args ...any) *fault.Error {
	f := fault.New(fault.Unavailable, format, args...)
	f.Detail.RetryAfter = 5 * time.Second
	return f
}
