package app

import (
	"context"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
)

// CreateWorkspace makes a workspace.
func (a *Admin) CreateWorkspace(ctx context.Context, slug string, c workspace.Change) (workspace.Workspace, error) {
	if err := checkModel(c); err != nil {
		return workspace.Workspace{}, err
	}
	return a.Workspaces.Add(ctx, slug, c)
}

// UpdateWorkspace changes a workspace, named by slug or id.
func (a *Admin) UpdateWorkspace(ctx context.Context, ref string, c workspace.Change) (workspace.Workspace, error) {
	if err := checkModel(c); err != nil {
		return workspace.Workspace{}, err
	}
	w, err := a.Workspaces.Find(ctx, ref)
	if err != nil {
		return workspace.Workspace{}, err
	}
	return a.Workspaces.Update(ctx, w.ID, c)
}

// checkModel refuses a model that no provider has, with all else that is wrong. The
// owner of workspaces does not know the providers.
func checkModel(c workspace.Change) error {
	if c.Model == nil || *c.Model == "" {
		return nil
	}
	_, err := parseModel(*c.Model)
	if err == nil {
		return nil
	}
	wrong := []fault.Violation{{Param: "/model", Rule: "format", Message: strings.ToUpper(err.Error()[:1]) + strings.TrimRight(err.Error()[1:], "?.") + "."}}
	c.Model = nil
	return fault.Invalid(append(wrong, c.Violations()...)...)
}

// CreateKey makes a key for a workspace, named by slug or id. life nil is for ever.
func (a *Admin) CreateKey(ctx context.Context, workspace, name string, scopes apikey.Scopes, life *time.Duration) (apikey.Key, string, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return apikey.Key{}, "", err
	}
	return a.Keys.Create(ctx, apikey.Grant{Workspace: w.ID, Name: name, Scopes: scopes, Life: life})
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

// CreateWebhookToken makes a workspace's webhook_token.
func (a *Admin) CreateWebhookToken(ctx context.Context, workspace string) (apikey.Key, string, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return apikey.Key{}, "", err
	}
	return a.Keys.CreateWebhookToken(ctx, w.ID)
}

// WebhookToken tells what is known of a workspace's webhook_token.
func (a *Admin) WebhookToken(ctx context.Context, workspace string) (apikey.Key, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return apikey.Key{}, err
	}
	return a.Keys.WebhookToken(ctx, w.ID)
}

// RevokeWebhookToken ends a workspace's webhook_token.
func (a *Admin) RevokeWebhookToken(ctx context.Context, workspace string) (apikey.Key, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return apikey.Key{}, err
	}
	return a.Keys.RevokeWebhookToken(ctx, w.ID)
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

// DeleteDocument removes a document of a workspace.
func (a *Admin) DeleteDocument(ctx context.Context, workspace, path string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return a.Wiki.Delete(ctx, w.ID, path)
}

// Documents lists a workspace's documents whose path begins with prefix.
func (a *Admin) Documents(ctx context.Context, workspace, prefix string) ([]wiki.Entry, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Wiki.List(ctx, w.ID, prefix)
}
