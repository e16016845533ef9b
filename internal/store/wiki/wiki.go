// Package wiki owns documents: the wiki pages and other files that a workspace's
// agent may read, and the sections in which PostgreSQL searches them. It is the only writer of
// these tables, promises that a search by words sees every committed change, keeps no documents in
// memory, and never reads across workspaces. With a model of embeddings and pgvector it also searches
// by the vectors of passages, which it makes in the background.
package wiki

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// Document is a wiki page or another file. A write raises its version by one.
type Document struct {
	Path      string
	Title     string
	Content   string
	Version   int
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Entry is a document in a list, without its content.
type Entry struct {
	Path      string
	Title     string
	Size      int    // bytes
	SHA256    string // of the content, in hex
	Version   int
	UpdatedAt time.Time
}

// Store reads, writes and searches documents. Documents are addressed by their
// path; PageKey gives the path of a wiki page.
type Store struct {
	pool    *pgxpool.Pool
	q       *db.Queries
	vectors *vectors // nil: searches by words alone
}

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// Get reads a document, or fails with FILE_NOT_FOUND and similar names.
func (s *Store) Get(ctx context.Context, workspace uuid.UUID, name string) (Document, error) {
	d, found, err := s.findPage(ctx, workspace, name)
	if err != nil {
		return d, err
	}
	if !found {
		return d, s.notFound(ctx, workspace, name)
	}
	return d, nil
}

// List returns the documents with a path that begins with prefix, by path.
func (s *Store) List(ctx context.Context, workspace uuid.UUID, prefix string) ([]Entry, error) {
	return s.listDocuments(ctx, workspace, prefix, "", nil)
}

// ListPage is List after a path, with at most this many documents.
func (s *Store) ListPage(ctx context.Context, workspace uuid.UUID, prefix, after string, most int) ([]Entry, error) {
	return s.listDocuments(ctx, workspace, prefix, after, new(int32(most)))
}

func (s *Store) listDocuments(ctx context.Context, workspace uuid.UUID, prefix, after string, most *int32) ([]Entry, error) {
	if !text.IsStorable(prefix) || !text.IsStorable(after) {
		return nil, nil
	}
	rows, err := s.q.DocumentsList(ctx, workspace, prefix, after, most)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		entries[i] = Entry{Path: r.Path, Title: r.Title, Size: int(r.Size), SHA256: r.Sha256, Version: int(r.Version), UpdatedAt: r.UpdatedAt}
	}
	return entries, nil
}

// Delete removes a document, or fails with FILE_NOT_FOUND.
func (s *Store) Delete(ctx context.Context, workspace uuid.UUID, name string) error {
	if checkPath(name) != nil {
		return s.notFound(ctx, workspace, name)
	}
	n, err := s.q.DocumentDelete(ctx, workspace, name, nil)
	if err != nil {
		return fmt.Errorf("delete document: %w", err)
	}
	if n == 0 {
		return s.notFound(ctx, workspace, name)
	}
	return nil
}

// Remove deletes a document at the version that its administrator has read. ok is false if it is at
// another version by now, or does not exist.
func (s *Store) Remove(ctx context.Context, workspace uuid.UUID, name string, expected int) (ok bool, err error) {
	if checkPath(name) != nil {
		return false, nil
	}
	n, err := s.q.DocumentDelete(ctx, workspace, name, new(int32(min(expected, math.MaxInt32))))
	if err != nil {
		return false, fmt.Errorf("delete document: %w", err)
	}
	return n > 0, nil
}

// findPage reads a document, if it exists. A path that no document can have does not exist: it is
// never sent to PostgreSQL.
func (s *Store) findPage(ctx context.Context, workspace uuid.UUID, name string) (Document, bool, error) {
	if checkPath(name) != nil {
		return Document{}, false, nil
	}
	d, err := s.q.DocumentGet(ctx, workspace, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return Document{}, false, nil
	}
	if err != nil {
		return Document{}, false, fmt.Errorf("get document: %w", err)
	}
	return Document{
		Path: d.Path, Title: d.Title, Content: d.Content, Version: int(d.Version), CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}, true, nil
}

func (s *Store) notFound(ctx context.Context, workspace uuid.UUID, name string) error {
	paths, err := s.Paths(ctx, workspace, name)
	if err != nil {
		return err
	}
	e := fault.New(fault.FileNotFound, "The document does not exist.")
	if near := search.Nearest(name, paths, 1); len(near) > 0 {
		e.Message += fmt.Sprintf(" Did you mean %q?", near[0])
	}
	return e
}

// Measure returns the number of the documents of a workspace, and their bytes together.
func (s *Store) Measure(ctx context.Context, workspace uuid.UUID) (documents int, bytes int64, err error) {
	all, err := s.q.DocumentsMeasure(ctx, workspace, "") // no document has an empty path
	if err != nil {
		return 0, 0, fmt.Errorf("measure documents: %w", err)
	}
	return int(all.Documents), all.Bytes, nil
}

// Page returns the content of a wiki page and its version; version 0 means that the page does not
// exist.
func (s *Store) Page(ctx context.Context, workspace uuid.UUID, page string) (content string, version int, err error) {
	d, _, err := s.findPage(ctx, workspace, PageKey(page))
	return d.Content, int(d.Version), err
}

// File returns the content of a document; found is false if it does not exist.
func (s *Store) File(ctx context.Context, workspace uuid.UUID, path string) (content string, found bool, err error) {
	d, found, err := s.findPage(ctx, workspace, path)
	return d.Content, found, err
}
