package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/workspace"
)

// ration counts a request against its key's quota, and tells in its answer what is
// left. A request that cannot be counted passes.
func (s *server) ration(ctx context.Context, w http.ResponseWriter, r *request) error {
	class := r.op.Class
	size := s.limits(r.workspace).Of(class)
	if size == 0 {
		return nil
	}
	q, err := s.cfg.Limits.Take(ctx, r.caller.Key, class, size)
	if err != nil && fault.From(err) == nil {
		s.cfg.Log.WarnContext(ctx, "a request was not counted", "key", r.caller.Key, "err", err)
		return nil
	}
	h := w.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60`, class, q.Size))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, class, q.Left, ceilSeconds(q.Next)))
	return err
}

// hold counts the request as an open stream of its key until release is called. A
// blocking call is one too: it holds a connection.
func (s *server) hold(r *request) (release func(), err error) {
	most := s.limits(r.workspace).Streams
	if most == 0 {
		return func() {}, nil
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	return s.cfg.Limits.Hold(ctx, r.caller.Key, most)
}

// limits are those of a workspace's keys.
func (s *server) limits(w workspace.Workspace) limit.Limits {
	if s.cfg.Limits == nil {
		return limit.Limits{}
	}
	l := s.cfg.Limits.Limits()
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

// limits are the limits that can be configured, by their names in the document.
func (cfg Config) limits() map[string]int {
	l := map[string]int{
		"keepalive_seconds":     ceilSeconds(cfg.Keepalive),
		"write_timeout_seconds": ceilSeconds(cfg.WriteTimeout),
		"messages_per_minute":   0, "calls_per_minute": 0, "open_streams": 0,
	}
	if cfg.Sessions != nil {
		l["replay_seconds"] = ceilSeconds(cfg.Sessions.ReplayWindow())
	}
	if cfg.Limits != nil {
		own := cfg.Limits.Limits()
		l["messages_per_minute"], l["calls_per_minute"], l["open_streams"] = own.Messages, own.Calls, own.Streams
	}
	if cfg.Turns != nil {
		l["approval_window_seconds"] = ceilSeconds(cfg.Turns.Window())
	}
	if cfg.Files != nil {
		l["signed_url_seconds"] = ceilSeconds(cfg.Files.TTL())
	}
	return l
}

// known remembers what it takes to refuse a request of a workspace's key: its name,
// which never changes, and its limits.
type known struct {
	mu sync.Mutex
	m  map[uuid.UUID]workspace.Workspace
}

const maxKnown = 10_000

// own is the caller's workspace. Of a key that is over its limit it may be no more than
// what is known, so that a flood is refused without the database.
func (s *server) own(ctx context.Context, caller apikey.Principal, class limit.Class) (w workspace.Workspace, whole bool, err error) {
	k := &s.known
	if s.cfg.Limits != nil && s.cfg.Limits.Empty(caller.Key, class) {
		k.mu.Lock()
		w, ok := k.m[caller.Workspace]
		k.mu.Unlock()
		if ok {
			return w, false, nil
		}
	}
	if w, err = s.cfg.Workspaces.Find(ctx, caller.Workspace.String()); err != nil {
		return w, false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil || len(k.m) >= maxKnown {
		k.m = make(map[uuid.UUID]workspace.Workspace)
	}
	k.m[w.ID] = workspace.Workspace{ID: w.ID, Slug: w.Slug, MessagesPerMinute: w.MessagesPerMinute, CallsPerMinute: w.CallsPerMinute}
	return w, true, nil
}

func ceilSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
