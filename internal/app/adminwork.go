package app

import (
	"context"
	"time"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/wiki"
)

// CreateKey makes a key for a workspace, named by slug or id. life nil is for ever.
func (a *Admin) CreateKey(ctx context.Context, workspace, name string, scopes apikey.Scopes, life *time.Duration) (apikey.Key, string, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return apikey.Key{}, "", err
	}
	g := apikey.Grant{Workspace: w.ID, Name: name, Scopes: scopes}
	if life != nil {
		g.Expires = new(time.Now().Add(*life))
	}
	return a.Keys.Create(ctx, g)
}

// ListKeys lists a workspace's keys, dead ones included.
func (a *Admin) ListKeys(ctx context.Context, workspace string) ([]apikey.Key, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Keys.List(ctx, w.ID)
}

// RotateKey makes a key in place of another, which works on for the overlap.
func (a *Admin) RotateKey(ctx context.Context, workspace, id string, overlap time.Duration) (apikey.Key, string, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return apikey.Key{}, "", err
	}
	return a.Keys.Rotate(ctx, w.ID, id, overlap)
}

// RevokeKey ends a key.
func (a *Admin) RevokeKey(ctx context.Context, workspace, id string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return a.Keys.Revoke(ctx, w.ID, id)
}

// PutDocument writes a document of a workspace.
func (a *Admin) PutDocument(ctx context.Context, workspace, path, content string) (wiki.Document, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return wiki.Document{}, err
	}
	return a.Wiki.Put(ctx, w.ID, path, content)
}

// Document reads a document of a workspace.
func (a *Admin) Document(ctx context.Context, workspace, path string) (wiki.Document, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return wiki.Document{}, err
	}
	return a.Wiki.Get(ctx, w.ID, path)
}

// Documents lists a workspace's documents whose path begins with prefix.
func (a *Admin) Documents(ctx context.Context, workspace, prefix string) ([]wiki.Entry, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Wiki.List(ctx, w.ID, prefix)
}
