package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Ration counts a request against its key's quota, and tells in its answer what is
// left. A request that cannot be counted passes.
func (d *Door) Ration(ctx context.Context, w http.ResponseWriter, c Caller, class ratelimit.Class) error {
	q, err := d.Count(ctx, c, class)
	if q.Size == 0 {
		return err
	}
	h := w.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60`, class, q.Size))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, class, q.Left, ceilSeconds(q.Next)))
	return err
}

// Count counts something that a caller does against the quota of its key, and fails with
// RATE_LIMITED where there is none left. The zero Quota is that of a caller who is not
// limited, or could not be counted: that is no reason to refuse.
func (d *Door) Count(ctx context.Context, c Caller, class ratelimit.Class) (ratelimit.Quota, error) {
	size := d.limits(c.Workspace).Of(class)
	if size == 0 {
		return ratelimit.Quota{}, nil
	}
	q, err := d.Limits.Take(ctx, c.Key, class, size)
	if err != nil && fault.From(err) == nil {
		d.counts.Note(ctx, err, "key", c.Key)
		return ratelimit.Quota{}, nil
	}
	d.counts.Note(ctx, nil)
	return q, err
}

// Hold counts a caller as one who has a stream open until release is called. A call that
// waits is one too: it holds a connection.
func (d *Door) Hold(ctx context.Context, c Caller) (release func(), err error) {
	most := d.limits(c.Workspace).Streams
	if most == 0 {
		return func() {}, nil
	}
	ctx, cancel := d.Brief(ctx)
	defer cancel()
	return d.Limits.Hold(ctx, c.Key, most)
}

// limits are those of a workspace's keys.
func (d *Door) limits(w workspace.Workspace) ratelimit.Limits {
	if d.Limits == nil {
		return ratelimit.Limits{}
	}
	l := d.Limits.Limits()
	for _, own := range []struct {
		limit *int
		value *int32
	}{{&l.Messages, w.MessagesPerMinute}, {&l.Calls, w.CallsPerMinute}, {&l.Streams, w.OpenStreams}} {
		if own.value != nil {
			*own.limit = int(*own.value)
		}
	}
	return l
}

// own is the caller's workspace. Of a key that is over its limit it may be no more than
// what is known, so that a flood is refused without the database.
func (d *Door) own(ctx context.Context, caller apikey.Principal, class ratelimit.Class) (w workspace.Workspace, whole bool, err error) {
	if d.Limits != nil && d.Limits.Empty(caller.Key, class) {
		if w, ok := d.Workspaces.Known(caller.Workspace); ok {
			return w, false, nil
		}
	}
	w, err = d.Workspaces.Find(ctx, caller.Workspace.String())
	return w, true, err
}

func ceilSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
