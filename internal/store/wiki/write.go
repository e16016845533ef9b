package wiki

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/search"
)

// The limits of a workspace's documents together. Concurrent writers may exceed a limit by one
// document each.
const (
	MaxDocuments = 100_000
	MaxTotal     = 1 << 30 // bytes
)

// Put creates or replaces a document. Its title is its first heading, or else the name of the file.
func (s *Store) Put(ctx context.Context, workspace uuid.UUID, name, content string) (Document, error) {
	title, err := s.admitDocument(ctx, workspace, name, content)
	if err != nil {
		return Document{}, err
	}
	var row db.DocumentPutRow
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if row, err = q.DocumentPut(ctx, workspace, name, title, content); err != nil {
			return err
		}
		return writeSections(ctx, q, workspace, name, title, content)
	})
	if err != nil {
		return Document{}, writeError("put document", err)
	}
	return Document{
		Path: row.Path, Title: row.Title, Content: content, Version: int(row.Version), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}, nil
}

// WritePage writes a wiki page over the version that the writer has read; expected 0 makes a new
// page. ok is false if the page is at another version by now, or, with version 0, does not exist.
// Writing the same content again is a success: a write may be repeated if its outcome is unknown.
func (s *Store) WritePage(ctx context.Context, workspace uuid.UUID, page, content string, expected int) (version int, ok bool, err error) {
	return s.Write(ctx, workspace, PageKey(page), content, expected)
}

// Write is WritePage for any document, by its path.
func (s *Store) Write(ctx context.Context, workspace uuid.UUID, name, content string, expected int) (version int, ok bool, err error) {
	title, err := s.admitDocument(ctx, workspace, name, content)
	if err != nil {
		return 0, false, err
	}
	var written int32
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if expected == 0 {
			written, err = q.DocumentCreate(ctx, workspace, name, title, content)
		} else {
			written, err = q.DocumentReplace(ctx, db.DocumentReplaceParams{
				WorkspaceID: workspace, Path: name, Title: title, Content: content, Expected: int32(min(expected, math.MaxInt32)),
			})
		}
		if err != nil {
			return err
		}
		return writeSections(ctx, q, workspace, name, title, content)
	})
	if err == nil {
		return int(written), true, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, false, writeError("write wiki page", err)
	}
	d, found, err := s.findPage(ctx, workspace, name)
	if err != nil || !found {
		return 0, false, err
	}
	return d.Version, d.Content == content, nil
}

// writeError returns a fault for a write that exceeds the storage quota of the workspace.
func writeError(operation string, err error) error {
	if why, ok := pgerr.IsQuotaExceeded(err); ok {
		return fault.Invalid(fault.Violation{Param: "/content", Rule: "max_total",
			Message: why + " Delete documents or files, or ask an administrator for a larger quota."})
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// admitDocument validates a document to be written, and returns its title.
func (s *Store) admitDocument(ctx context.Context, workspace uuid.UUID, name, content string) (title string, err error) {
	vs := append(checkNew(name), checkContent(content)...)
	if len(vs) > 0 {
		return "", fault.Invalid(vs...)
	}
	now, err := s.q.DocumentsMeasure(ctx, workspace, name)
	if err != nil {
		return "", fmt.Errorf("measure documents: %w", err)
	}
	if now.Size < 0 && now.Documents >= MaxDocuments {
		vs = append(vs, fault.Violation{Param: "/path", Rule: "max_items",
			Message: "A workspace has at most 100,000 documents. Delete some first.", Expected: MaxDocuments})
	}
	if grown := int64(len(content)) - max(now.Size, 0); grown > 0 && now.Bytes+grown > MaxTotal {
		vs = append(vs, fault.Violation{Param: "/content", Rule: "max_total",
			Message: "The documents of a workspace have at most 1 GiB together. Delete some first.", Expected: MaxTotal})
	}
	if len(vs) > 0 {
		return "", fault.Invalid(vs...)
	}
	if title = search.Title(content); title == "" {
		title = path.Base(name)
	}
	return title, nil
}
