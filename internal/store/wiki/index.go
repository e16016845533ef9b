package wiki

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/search"
)

const (
	sectionLimit = 8 << 10 // bytes of a section: a tsvector has at most 1 MiB
	indexBatch   = 20      // documents of a transaction
	indexEvery   = time.Minute
)

// Run indexes the documents that another release has written, or whose language has changed, and makes
// the vectors of documents, until ctx ends.
func (s *Store) Run(ctx context.Context, log *slog.Logger) error {
	indexing, embedding := outage.New(log, "index documents"), outage.New(log, "make the vectors of documents")
	tick := time.NewTicker(indexEvery)
	defer tick.Stop()
	for {
		n, err := s.indexStale(ctx, nil, indexBatch)
		if ctx.Err() != nil {
			return nil
		}
		indexing.Note(ctx, err)
		more, err := s.vectors.embedSome(ctx)
		if ctx.Err() != nil {
			return nil
		}
		embedding.Note(ctx, err)
		if n == indexBatch || more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// indexStale stores the sections of at most this many stale documents, and returns their number. A
// nil workspace is all of them.
func (s *Store) indexStale(ctx context.Context, workspace *uuid.UUID, most int) (n int, err error) {
	stale, err := s.q.DocumentsAreStale(ctx, workspace)
	if err != nil || !stale {
		return 0, err
	}
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		docs, err := q.DocumentsStale(ctx, workspace, int32(most))
		if err != nil {
			return err
		}
		for _, d := range docs {
			if err := writeSections(ctx, q, d.WorkspaceID, d.Path, d.Title, d.Content); err != nil {
				return err
			}
			if err := q.DocumentIndexed(ctx, d.WorkspaceID, d.Path); err != nil {
				return err
			}
		}
		n = len(docs)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("index documents: %w", err)
	}
	return n, nil
}

// writeSections replaces the sections of a document.
func writeSections(ctx context.Context, q *db.Queries, workspace uuid.UUID, name, title, content string) error {
	if err := q.SectionsDelete(ctx, workspace, name); err != nil {
		return err
	}
	p := db.SectionsInsertParams{WorkspaceID: workspace, Path: name, About: title + " " + strings.TrimSuffix(name, path.Ext(name))}
	for _, s := range sectionsOf(name, content) {
		p.Lines, p.Headings, p.Bodies = append(p.Lines, int32(s.Line)), append(p.Headings, s.Heading), append(p.Bodies, s.Text)
	}
	return q.SectionsInsert(ctx, p)
}

// sectionsOf splits a document. A document without text has one empty section: its name is found.
func sectionsOf(name, content string) (list []search.Section) {
	for _, s := range search.Split(name, content) {
		for len(s.Text) > sectionLimit {
			part := s
			part.Text = s.Text[:cutAt(s.Text, sectionLimit)]
			list = append(list, part)
			s.Line, s.Text = s.Line+strings.Count(part.Text, "\n"), s.Text[len(part.Text):]
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		list = []search.Section{{Doc: name, Heading: search.Title(content), Line: 1}}
	}
	return list
}

// cutAt returns where a text of more than n bytes is cut: after a line, or else after a character.
func cutAt(s string, n int) int {
	if i := strings.LastIndexByte(s[:n], '\n'); i > 0 {
		return i + 1
	}
	for n > 1 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
