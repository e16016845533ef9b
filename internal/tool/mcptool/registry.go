package mcptool

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/toolset"
)

// storeTime limits a write of the registry.
const storeTime = 3 * time.Second

// Record is the Registry of a workspace. A write that fails is logged.
type Record struct {
	Store     *toolset.Store
	Workspace uuid.UUID
	Log       *slog.Logger
}

// NoteUse implements Registry.
func (r Record) NoteUse(ctx context.Context, server toolset.Server, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if reason != "" {
		r.Log.WarnContext(ctx, "a tool server failed", "workspace", r.Workspace, "server", server.Name, "err", reason)
	}
	if err := r.Store.NoteUse(ctx, server.ID, reason); err != nil {
		r.Log.WarnContext(ctx, "record the use of a tool server", "server", server.Name, "err", err)
	}
}

// Refresh implements Registry. A server where each caller has a grant may offer a caller less than
// others: that decides only about the calls of this caller.
func (r Record) Refresh(ctx context.Context, server toolset.Server, protocol string, offers []toolset.Offer) ([]string, bool) {
	if server.Auth.PerCaller {
		return server.Unchanged(offers), true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	fresh, _, err := r.Store.Refresh(ctx, r.Workspace, server.Name, protocol, offers)
	if err != nil {
		r.Log.WarnContext(ctx, "compare the tools of a tool server", "server", server.Name, "err", err)
		return nil, false
	}
	usable := []string{}
	for _, t := range fresh.Tools {
		if t.State() == toolset.Usable {
			usable = append(usable, t.Name)
		}
	}
	return usable, true
}
