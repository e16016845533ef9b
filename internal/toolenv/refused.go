package toolenv

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/egress"
)

const (
	// maxRefusedHosts is the number of hosts with their own rows for refused requests in a minute
	// of a run. The requests to all other hosts share a row per decision.
	maxRefusedHosts = 64
	// countEvery is the pause between two updates of the rows; meanwhile counts stay in memory.
	countEvery = time.Second
)

// otherHosts is the host of the row that requests to many hosts share.
const otherHosts = "*"

// refusals aggregates the refused requests of a run: those to one host within a minute are one row.
// A request that is refused while it connects already has a row, which is removed if another row
// covers it.
type refusals struct {
	mu      sync.Mutex
	minute  time.Time
	rows    map[string]*refusalRow
	written time.Time
}

type refusalRow struct {
	id      int64
	unsaved int32
}

// recordRefusal counts a refused request, and inserts a row for the first one of its kind.
func (x *Run) recordRefusal(ctx context.Context, req egress.Request) error {
	f := &x.refused
	f.mu.Lock()
	defer f.mu.Unlock()
	req, row := x.refusalRow(ctx, req)
	if row != nil {
		x.countRefusal(ctx, row)
		return nil
	}
	id, err := x.insertRequest(ctx, req)
	if err != nil {
		return err
	}
	f.rows[refusalKey(req)] = &refusalRow{id: id}
	return nil
}

// refuseRecorded is recordRefusal for a request that already has a row.
func (x *Run) refuseRecorded(ctx context.Context, id int64, req egress.Request) error {
	f := &x.refused
	f.mu.Lock()
	defer f.mu.Unlock()
	aggregated, row := x.refusalRow(ctx, req)
	if row == nil && aggregated.Host != otherHosts {
		f.rows[refusalKey(req)] = &refusalRow{id: id}
		return x.r.q.EgressRequestDone(ctx, nil, req.Decision, id)
	}
	if row == nil {
		shared, err := x.insertRequest(ctx, aggregated)
		if err != nil {
			return err
		}
		f.rows[refusalKey(aggregated)] = &refusalRow{id: shared}
	} else {
		x.countRefusal(ctx, row)
	}
	return x.r.q.EgressRequestRemove(ctx, id)
}

// refusalRow returns the row that counts a refused request, or nil and the request to insert. The
// caller holds the mutex.
func (x *Run) refusalRow(ctx context.Context, req egress.Request) (egress.Request, *refusalRow) {
	f := &x.refused
	if now := time.Now().Truncate(time.Minute); !now.Equal(f.minute) || f.rows == nil {
		x.countRefusals(ctx)
		f.minute, f.rows = now, make(map[string]*refusalRow)
	}
	row := f.rows[refusalKey(req)]
	if row == nil && len(f.rows) >= maxRefusedHosts {
		req = egress.Request{Method: req.Method, Scheme: req.Scheme, Host: otherHosts, Path: "/", Decision: req.Decision}
		row = f.rows[refusalKey(req)]
	}
	return req, row
}

// countRefusal counts a request in its row. The caller holds the mutex.
func (x *Run) countRefusal(ctx context.Context, row *refusalRow) {
	row.unsaved++
	if time.Since(x.refused.written) >= countEvery {
		x.countRefusals(ctx)
	}
}

func refusalKey(req egress.Request) string {
	if req.Host == otherHosts {
		return req.Decision + " " + otherHosts
	}
	return strings.Join(append([]string{req.Decision, req.Host}, req.Refused...), " ")
}

// flushRefusals writes the counts in memory.
func (x *Run) flushRefusals() {
	x.refused.mu.Lock()
	defer x.refused.mu.Unlock()
	x.countRefusals(context.Background())
}

// countRefusals adds the counts in memory to their rows. The caller holds the mutex.
func (x *Run) countRefusals(ctx context.Context) {
	var ids []int64
	var times []int32
	for _, row := range x.refused.rows {
		if row.unsaved > 0 {
			ids, times = append(ids, row.id), append(times, row.unsaved)
		}
	}
	x.refused.written = time.Now()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if err := x.r.q.EgressRequestsRepeat(ctx, ids, times); err != nil {
		x.log.WarnContext(ctx, "count refused requests", "err", err)
		return
	}
	for _, row := range x.refused.rows {
		row.unsaved = 0
	}
}
