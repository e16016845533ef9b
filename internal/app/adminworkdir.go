package app

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Folder lists what is in the folder of a workspace's session.
func (a *Admin) Folder(ctx context.Context, workspace string, id uuid.UUID) ([]workdir.Entry, error) {
	of, err := a.sessionOf(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	return workdir.New(a.pool, workdir.Options{}).List(ctx, of, id)
}

// FolderFile finds a file in the folder of a workspace's session.
func (a *Admin) FolderFile(ctx context.Context, workspace string, id uuid.UUID, path string) (workdir.Content, error) {
	of, err := a.sessionOf(ctx, workspace, id)
	if err != nil {
		return workdir.Content{}, err
	}
	return workdir.New(a.pool, workdir.Options{}).Open(ctx, of, id, path)
}

// sessionOf finds the workspace, named by slug or id, that has a session.
func (a *Admin) sessionOf(ctx context.Context, workspace string, id uuid.UUID) (uuid.UUID, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return uuid.Nil, err
	}
	_, err = session.New(a.pool, session.Options{}).Head(ctx, w.ID, id)
	return w.ID, err
}
