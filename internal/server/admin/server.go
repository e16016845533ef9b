package admin

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
)

func (s *api) listWorkspaces(ctx context.Context, c *call) (any, error) {
	list, err := s.Workspaces.List(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := s.Workspaces.Storage(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]workspaceView, len(list))
	for i, w := range list {
		views[i] = viewWorkspace(w)
		views[i].Storage = new(stored[w.ID])
	}
	return paged(c, views, func(w workspaceView) string { return w.Slug })
}

// newWorkspace is a workspace with the first key of its administrator.
type newWorkspace struct {
	workspaceView
	Admin *keyView `json:"admin_key"` // null: with_key was false
}

// createWorkspace creates a workspace and, unless with_key is false, a key with every scope of a
// workspace, which issues the others.
func (s *api) createWorkspace(ctx context.Context, c *call) (any, error) {
	change, slug := c.workspaceChange(), c.body.RequiredString("slug", 63)
	withKey := c.optionalBool("with_key")
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := s.CheckModel(ctx, uuid.Nil, change); err != nil {
		return nil, err
	}
	w, err := s.Workspaces.Add(ctx, slug, change)
	if err != nil {
		return nil, err
	}
	view := viewWorkspace(w)
	if withKey != nil && !*withKey {
		return newWorkspace{workspaceView: view}, nil
	}
	scopes := append(append(apikey.Scopes{}, apikey.Usual...), apikey.Admin)
	key, text, err := s.Keys.Create(ctx, apikey.Grant{Workspace: w.ID, Name: "administrator", Scopes: scopes})
	if err != nil {
		return nil, err
	}
	return once{newWorkspace{view, &keyView{key, &text}}, newWorkspace{view, &keyView{Key: key}}}, nil
}

// deletedWorkspace is the result of the deletion of a workspace.
type deletedWorkspace struct {
	ID       uuid.UUID `json:"workspace_id"`
	Sessions int       `json:"sessions"`
	Canceled int       `json:"canceled_turns"`
}

// deleteTime limits the deletion of a workspace, which can have many sessions. It can be repeated.
const deleteTime = 10 * time.Minute

func (s *api) deleteWorkspace(ctx context.Context, c *call) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	ref := c.PathValue("workspaceId")
	id, ok := request.ID(ref)
	if !ok {
		return nil, noWorkspace(ref)
	}
	if _, err := s.Workspaces.Find(ctx, ref); err != nil {
		return nil, noWorkspace(ref)
	}
	sessions, canceled, err := s.Stores.DeleteWorkspace(ctx, id, c.Caller.By())
	return deletedWorkspace{id, sessions, canceled}, err
}

func noWorkspace(ref string) error { return notFound("administration of a workspace", ref) }

// retentionView describes which data is kept, and for how long. It is configured for the server.
type retentionView struct {
	ReplaySeconds int64           `json:"replay_seconds"`
	AuditSeconds  int64           `json:"audit_seconds"`
	DeltasBefore  time.Time       `json:"deltas_before"`
	RecordsBefore time.Time       `json:"records_before"`
	PastSessions  int             `json:"past_sessions"`
	Partitions    []partitionView `json:"partitions"`
}

type partitionView struct {
	Name  string    `json:"name"`
	Holds string    `json:"holds"`
	Until time.Time `json:"until"`
	Bytes int64     `json:"bytes"`
}

func (s *api) getRetention(ctx context.Context, _ *call) (any, error) {
	r, err := s.Sessions.Retention(ctx)
	if err != nil {
		return nil, err
	}
	replay, audit := s.Sessions.ReplayWindow(), s.Sessions.AuditRetention()
	v := retentionView{int64(replay.Seconds()), int64(audit.Seconds()), r.DeltasBefore, r.RecordsBefore, r.Sessions, []partitionView{}}
	for _, p := range r.Partitions {
		holds := "records"
		if p.Deltas {
			holds = "text"
		}
		v.Partitions = append(v.Partitions, partitionView{p.Name, holds, p.Ends.UTC(), p.Bytes})
	}
	return v, nil
}

// Deletion removes a workspace with all its data. It returns the numbers of its sessions and of the
// turns that it canceled.
type Deletion func(ctx context.Context, id uuid.UUID, by string) (sessions, canceled int, err error)
