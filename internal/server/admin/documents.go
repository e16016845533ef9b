package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/parley-server/parley/internal/fault"
)

// documentView is a document; in a list it has no content.
type documentView struct {
	Path      string    `json:"path"`
	Title     string    `json:"title"`
	Size      int       `json:"size"`   // bytes
	SHA256    string    `json:"sha256"` // of the content
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	Content   *string   `json:"content,omitempty"`
}

func (s *api) listDocuments(ctx context.Context, c *call) (any, error) {
	prefix, limit := c.query.Text("prefix"), c.query.Limit(usualPage)
	after, err := c.pageKey()
	if err != nil {
		return nil, err
	}
	list, err := s.Wiki.ListPage(ctx, c.Caller.Workspace.ID, prefix, after, limit+1)
	if err != nil {
		return nil, err
	}
	views := make([]documentView, len(list))
	for i, e := range list {
		views[i] = documentView{Path: e.Path, Title: e.Title, Size: e.Size, SHA256: e.SHA256, Version: e.Version, UpdatedAt: e.UpdatedAt.UTC()}
	}
	return paged(c, views, func(d documentView) string { return d.Path })
}

func hexSum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// documentPath returns the path of the document that a call names.
func (c *call) documentPath() (string, error) {
	path := c.query.Text("path")
	if path == "" {
		c.Add(fault.Violation{Param: "/path", Rule: "required", Message: "path is missing: it names the document."})
		return "", c.Err()
	}
	return path, c.Err()
}

func (s *api) getDocument(ctx context.Context, c *call) (any, error) {
	path, err := c.documentPath()
	if err != nil {
		return nil, err
	}
	return s.findDocument(ctx, c, path)
}

func (s *api) findDocument(ctx context.Context, c *call, path string) (any, error) {
	d, err := s.Wiki.Get(ctx, c.Caller.Workspace.ID, path)
	if err != nil {
		return nil, err
	}
	view := documentView{d.Path, d.Title, len(d.Content), hexSum(d.Content), d.Version, d.UpdatedAt.UTC(), &d.Content}
	return tagged{view, strconv.Itoa(d.Version)}, nil
}

// putDocument writes a document. If-Match names the version that the content was made from; "0" is
// that of a document which does not exist yet.
func (s *api) putDocument(ctx context.Context, c *call) (any, error) {
	content, tag := c.body.RequiredText("content"), c.expected()
	path, err := c.documentPath()
	if err != nil {
		return nil, err
	}
	ws := c.Caller.Workspace.ID
	if tag == "" {
		if _, err := s.Wiki.Put(ctx, ws, path, content); err != nil {
			return nil, err
		}
		return s.findDocument(ctx, c, path)
	}
	expected, err := strconv.Atoi(tag)
	if err != nil || expected < 0 {
		return nil, stale("The document")
	}
	_, ok, err := s.Wiki.Write(ctx, ws, path, content, expected)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, stale("The document")
	}
	return s.findDocument(ctx, c, path)
}

func (s *api) deleteDocument(ctx context.Context, c *call) (any, error) {
	path, err := c.documentPath()
	if err != nil {
		return nil, err
	}
	return deleted{path, true}, s.Wiki.Delete(ctx, c.Caller.Workspace.ID, path)
}
