package wiki

import (
	"context"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/search"
)

// Hit is a passage found by a search. Doc is the document's path.
type Hit = search.Hit

// Search returns the passages that answer a query best, best first.
func (s *Store) Search(ctx context.Context, workspace uuid.UUID, query string, limit int) ([]Hit, error) {
	c, err := s.loadCorpus(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return c.index().Find(query, limit), nil
}

// Grep calls each with the lines that match, by path and line number, at most limit of them, and
// reports whether more lines match. It reads only documents with a path that begins with prefix.
func (s *Store) Grep(ctx context.Context, workspace uuid.UUID, pattern *regexp.Regexp, prefix string, limit int, each func(path string, line int, text string)) (more bool, err error) {
	c, err := s.loadCorpus(ctx, workspace)
	if err != nil {
		return false, err
	}
	found := 0
	for _, d := range c.docs {
		if !strings.HasPrefix(d.Path, prefix) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := 0
		for line := range strings.Lines(d.Content) {
			n++
			line = strings.TrimRight(line, "\r\n")
			if !pattern.MatchString(line) {
				continue
			}
			if found == limit {
				return true, nil
			}
			found++
			each(d.Path, n, line)
		}
	}
	return false, nil
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

// Pages returns the names of all wiki pages, sorted by their paths.
func (s *Store) Pages(ctx context.Context, workspace uuid.UUID) ([]string, error) {
	paths, err := s.Paths(ctx, workspace)
	if err != nil {
		return nil, err
	}
	var pages []string
	for _, p := range paths {
		if page, ok := PageOf(p); ok {
			pages = append(pages, page)
		}
	}
	return pages, nil
}

// Paths returns the paths of all documents, sorted.
func (s *Store) Paths(ctx context.Context, workspace uuid.UUID) ([]string, error) {
	entries, err := s.List(ctx, workspace, "")
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(entries))
	for i, e := range entries {
		paths[i] = e.Path
	}
	return paths, nil
}
