package turn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/parley-server/parley/internal/outage"
)

const (
	// fetchTimeout limits a fetch of jobs. With River's own limit of 10 s, a process with a dead
	// connection would not fetch turns for that long.
	fetchTimeout = 4 * time.Second
	// riverPingTimeout limits the test of River's listening connection, which has no limit of its
	// own.
	riverPingTimeout = 2 * time.Second
)

// driver is River's driver for pgx. It limits two waits for which River has no limit, or a long
// one.
type driver struct {
	*riverpgxv5.Driver
	fetched  *atomic.Int64 // when jobs were last fetched without an error, in Unix nanoseconds
	failures *outage.Log   // a fetch ends the outage
}

// GetExecutor implements riverdriver.Driver.
func (d driver) GetExecutor() riverdriver.Executor {
	return executor{d.Driver.GetExecutor(), d.fetched, d.failures}
}

// GetListener implements riverdriver.Driver.
func (d driver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return listener{d.Driver.GetListener(params)}
}

type executor struct {
	riverdriver.Executor
	fetched  *atomic.Int64
	failures *outage.Log
}

// JobGetAvailable implements riverdriver.Executor.
func (e executor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) (*riverdriver.JobGetAvailableResult,
	error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	jobs, err := e.Executor.JobGetAvailable(ctx, params)
	if err == nil && params.Queue == queue {
		e.fetched.Store(time.Now().UnixNano())
		e.failures.Note(ctx, nil)
	}
	return jobs, err
}

type listener struct{ riverdriver.Listener }

// Ping implements riverdriver.Listener.
func (l listener) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, riverPingTimeout)
	defer cancel()
	return l.Listener.Ping(ctx)
}
