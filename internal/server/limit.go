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

// CountRequest counts a request against its key's quota and sets the headers that report it. A
// request that cannot be counted passes.
func (s *Server) CountRequest(ctx context.Context, w http.ResponseWriter, c Caller, class ratelimit.Class) error {
	q, err := s.Count(ctx, c, class)
	if q.Size == 0 {
		return err
	}
	h := w.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60`, class, q.Size))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, class, q.Left, ceilSeconds(q.Next)))
	return err
}

// Count counts a request against the quota of its key and fails with RATE_LIMITED if it is used up.
// The zero Quota is that of a caller without a limit, or of a request that could not be counted and
// is accepted.
func (s *Server) Count(ctx context.Context, c Caller, class ratelimit.Class) (ratelimit.Quota, error) {
	size := s.KeyLimits(c.Workspace).Of(class)
	if size == 0 {
		return ratelimit.Quota{}, nil
	}
	q, err := s.Limits.Take(ctx, c.Credential(), class, size)
	if err != nil && fault.From(err) == nil {
		s.counts.Note(ctx, err, "key", c.Credential())
		return ratelimit.Quota{}, nil
	}
	s.counts.Note(ctx, nil)
	return q, err
}

// HoldStream counts an open stream of a caller until release is called. A waiting call also counts,
// since it holds a connection.
func (s *Server) HoldStream(ctx context.Context, c Caller) (release func(), err error) {
	most := s.KeyLimits(c.Workspace).Streams
	if most == 0 {
		return func() {}, nil
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	return s.Limits.Hold(ctx, c.Credential(), most)
}

// KeyLimits returns the limits of a workspace's keys.
func (s *Server) KeyLimits(w workspace.Workspace) ratelimit.Limits {
	if s.Limits == nil {
		return ratelimit.Limits{}
	}
	l := s.Limits.Limits()
	for _, own := range []struct {
		limit *int
		value *int
	}{{&l.Messages, w.MessagesPerMinute}, {&l.Calls, w.CallsPerMinute}, {&l.Streams, w.OpenStreams}} {
		if own.value != nil {
			*own.limit = *own.value
		}
	}
	return l
}

// ownWorkspace returns the workspace of a key, at most a second old. For a key over its limit it
// may be older, so that a flood is rejected without a query.
func (s *Server) ownWorkspace(ctx context.Context, caller apikey.Principal, class ratelimit.Class) (w workspace.Workspace, isRecent bool,
	err error) {
	if s.Limits != nil && s.Limits.Empty(caller.Credential(), class) {
		if w, ok := s.Workspaces.Known(caller.Workspace); ok {
			return w, false, nil
		}
	}
	w, err = s.Workspaces.Recent(ctx, caller.Workspace)
	return w, true, err
}

func ceilSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
