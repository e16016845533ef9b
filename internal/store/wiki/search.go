package wiki

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// Bounds of one search. They keep its time independent of the number of documents.
const (
	sampledSections = 500 // from which the rarity of a word is estimated
	candidates      = 200 // sections that one of the plan's queries may rank
	caughtUp        = 200 // documents of another release that a search indexes first
)

// Hit is a passage found by a search. Doc is the document's path.
type Hit = search.Hit

// Search returns the passages that answer a query best, best first, of the documents with a path
// that begins with prefix. A passage need not contain all words; quoted phrases must be in it, and
// words after a minus must not be in its document.
func (s *Store) Search(ctx context.Context, workspace uuid.UUID, query, prefix string, limit int) ([]Hit, error) {
	if !text.IsStorable(query) || !text.IsStorable(prefix) || limit < 1 {
		return nil, nil
	}
	if _, err := s.indexStale(ctx, &workspace, caughtUp); err != nil {
		return nil, err
	}
	words, phrases, excluded := parseQuery(query)
	terms, err := s.q.SearchTerms(ctx, workspace, sampledSections, words)
	if err != nil {
		return nil, fmt.Errorf("find the terms of a query: %w", err)
	}
	p := planSearch(terms)
	if len(p.terms) == 0 {
		return nil, nil
	}
	rows, err := s.q.SectionsRanked(ctx, db.SectionsRankedParams{
		WorkspaceID: workspace, Prefix: prefix, Phrases: phrases, Excluded: excluded, Queries: p.queries, Heads: p.heads, Every: p.every, AnyTerm: p.some,
		Terms: p.terms, Weights: p.weights, Most: candidates, Best: int32(limit), Mark: mark,
	})
	if err != nil {
		return nil, fmt.Errorf("search documents: %w", err)
	}
	hits := make([]Hit, len(rows))
	for i, r := range rows {
		section := search.Section{Doc: r.Path, Title: r.Title, Heading: r.Heading, Line: int(r.Line), Text: r.Body}
		hits[i] = Hit{Section: section, Score: r.Score, Coverage: r.Covered / p.whole, Snippet: snippetOf(r.Body, r.Marked)}
	}
	return hits, nil
}
