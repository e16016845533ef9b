package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// LogEntry is a change of the configuration.
type LogEntry struct {
	ID          int64           `json:"id"`
	At          time.Time       `json:"at"`
	WorkspaceID *string         `json:"workspace_id"` // nil: of the server
	Object      string          `json:"object"`       // the table
	ObjectID    string          `json:"object_id"`
	Action      string          `json:"action"` // insert, update or delete
	Actor       LogActor        `json:"actor"`
	Before      json.RawMessage `json:"before"` // without secrets; null after an insert
	After       json.RawMessage `json:"after"`  // null after a delete
}

// LogActor is the administrator or program that made a change.
type LogActor struct {
	Kind      string  `json:"kind"` // key, member, command, service or database
	ID        *string `json:"id"`
	Name      *string `json:"name"`
	Address   *string `json:"address"`
	RequestID *string `json:"request_id"`
}

// LogQuery filters the log of changes. The zero value lists all, newest first.
type LogQuery struct {
	Object   string
	ObjectID string
	Actor    string // id of a key or a member
	Since    time.Time
	Limit    int
	Cursor   string
}

// Log lists a page of the log of changes of the workspace.
func (a Admin) Log(ctx context.Context, q LogQuery) (Page[LogEntry], error) {
	params := map[string]string{"object": q.Object, "object_id": q.ObjectID, "actor": q.Actor, "cursor": q.Cursor}
	if !q.Since.IsZero() {
		params["since"] = q.Since.Format(time.RFC3339Nano)
	}
	return callJSON[Page[LogEntry]](ctx, a.c, http.MethodGet, withQuery(a.c.workspaceURL("admin-log"), q.Limit, params), nil)
}

// Workspaces lists the workspaces of the server. This method and the ones below need the scope
// server:admin.
func (a Admin) Workspaces(ctx context.Context) ([]Workspace, error) {
	return listAll[Workspace](ctx, a, a.server(http.MethodGet, nil, "workspaces"))
}

// NewWorkspace is a workspace with the first key of its administrator.
type NewWorkspace struct {
	Workspace
	AdminKey NewKey `json:"admin_key"`
}

// NewWorkspaceOptions configure CreateWorkspace.
type NewWorkspaceOptions struct {
	Settings WorkspaceChange
	NoKey    bool // create no key for an administrator
}

// CreateWorkspace creates a workspace. slug is its name in addresses.
func (a Admin) CreateWorkspace(ctx context.Context, slug string, opt NewWorkspaceOptions) (NewWorkspace, error) {
	in := opt.Settings.body()
	in["slug"] = slug
	if opt.NoKey {
		in["with_key"] = false
	}
	return administer[NewWorkspace](ctx, a, a.server(http.MethodPost, in, "workspaces"))
}

// DeletedWorkspace is the result of DeleteWorkspace.
type DeletedWorkspace struct {
	ID       string `json:"workspace_id"`
	Sessions int    `json:"sessions"`
	Canceled int    `json:"canceled_turns"`
}

// DeleteWorkspace deletes a workspace with its sessions, files and keys. id is its workspace_id.
func (a Admin) DeleteWorkspace(ctx context.Context, id string) (DeletedWorkspace, error) {
	return administer[DeletedWorkspace](ctx, a, a.server(http.MethodDelete, nil, "workspaces", id))
}

// PauseServer stops the agents of all workspaces.
func (a Admin) PauseServer(ctx context.Context) (PauseState, error) {
	return administer[PauseState](ctx, a, a.server(http.MethodPost, nil, "pause"))
}

// ResumeServer ends the pause of the server. A workspace that is paused itself stays so.
func (a Admin) ResumeServer(ctx context.Context) (PauseState, error) {
	return administer[PauseState](ctx, a, a.server(http.MethodPost, nil, "resume"))
}

// Retention describes which records of the log of events are needed, and until when.
type Retention struct {
	ReplaySeconds int64       `json:"replay_seconds"`
	AuditSeconds  int64       `json:"audit_seconds"`
	DeltasBefore  time.Time   `json:"deltas_before"` // older text is not needed
	RecordsBefore time.Time   `json:"records_before"`
	PastSessions  int         `json:"past_sessions"`
	Partitions    []Partition `json:"partitions"`
}

// Partition is a partition of the log of events.
type Partition struct {
	Name  string    `json:"name"`
	Holds string    `json:"holds"` // text or records
	Until time.Time `json:"until"`
	Bytes int64     `json:"bytes"`
}

// Retention returns the retention of the server.
func (a Admin) Retention(ctx context.Context) (Retention, error) {
	return administer[Retention](ctx, a, a.server(http.MethodGet, nil, "retention"))
}
