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
// words after a minus must not be in its document. With vectors, passages about the subject of the
// query are found without its words, too; without an answer of the model the words alone count.
func (s *Store) Search(ctx context.Context, workspace uuid.UUID, query, prefix string, limit int) ([]Hit, error) {
	if !text.IsStorable(query) || !text.IsStorable(prefix) || limit < 1 {
		return nil, nil
	}
	if _, err := s.indexStale(ctx, &workspace, caughtUp); err != nil {
		return nil, err
	}
	words, phrases, excluded := parseQuery(query)
	near := s.vectors.startQuery(ctx, words)
	terms, err := s.q.SearchTerms(ctx, workspace, sampledSections, words)
	if err != nil {
		return nil, fmt.Errorf("find the terms of a query: %w", err)
	}
	p := planSearch(terms)
	found, err := s.rankByWords(ctx, db.SectionsRankedParams{
		WorkspaceID: workspace, Prefix: prefix, Phrases: phrases, Excluded: excluded, Queries: p.queries, Heads: p.heads, Every: p.every,
		Terms: p.terms, Weights: p.weights, Most: candidates, Best: int32(max(limit, near.ranked())),
	}, p.whole)
	if err != nil {
		return nil, err
	}
	byVector := near.sections(ctx, db.SectionsNearParams{WorkspaceID: workspace, Prefix: prefix, Phrases: phrases, Excluded: excluded})
	found = fuseRanks(found, byVector)
	return s.readHits(ctx, workspace, found[:min(limit, len(found))], p)
}

// rankByWords returns the sections that have the words of a plan, best first.
func (s *Store) rankByWords(ctx context.Context, p db.SectionsRankedParams, whole float64) ([]ranked, error) {
	if len(p.Terms) == 0 {
		return nil, nil
	}
	rows, err := s.q.SectionsRanked(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("search documents: %w", err)
	}
	list := make([]ranked, len(rows))
	for i, r := range rows {
		list[i] = ranked{place{r.Path, r.N}, Hit{Score: r.Score, Coverage: r.Covered / whole, Source: search.ByWords}}
	}
	return list, nil
}

// readHits reads the texts of the sections that a search returns.
func (s *Store) readHits(ctx context.Context, workspace uuid.UUID, found []ranked, p plan) ([]Hit, error) {
	if len(found) == 0 {
		return nil, nil
	}
	shown := db.SectionsShownParams{WorkspaceID: workspace, AnyTerm: p.some, Mark: mark}
	for _, r := range found {
		shown.Paths, shown.Numbers = append(shown.Paths, r.path), append(shown.Numbers, r.n)
	}
	rows, err := s.q.SectionsShown(ctx, shown)
	if err != nil {
		return nil, fmt.Errorf("read sections: %w", err)
	}
	texts := make(map[place]db.SectionsShownRow, len(rows))
	for _, r := range rows {
		texts[place{r.Path, r.N}] = r
	}
	var hits []Hit
	for _, r := range found {
		row, ok := texts[r.place]
		if !ok {
			continue // deleted meanwhile
		}
		h := r.Hit
		h.Section = search.Section{Doc: row.Path, Title: row.Title, Heading: row.Heading, Line: int(row.Line), Text: row.Body}
		h.Snippet = snippetOf(row.Body, row.Marked, p.runs)
		hits = append(hits, h)
	}
	return hits, nil
}
