package wiki

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/search"
)

// cacheBytes is the maximum content of all cached workspaces together.
const cacheBytes = 64 << 20

// corpus is the content of all documents of a workspace at one version. It is immutable.
type corpus struct {
	version db.DocumentsVersionRow
	docs    []db.DocumentsAllRow
	bytes   int
	index   func() *search.Index // made by the first search
}

// cache keeps the most recently used corpora. A corpus is used only after PostgreSQL has confirmed
// that its version is still the newest.
type cache struct {
	mu      sync.Mutex
	entries map[uuid.UUID]*corpus
	order   []uuid.UUID // least recently used first
}

// loadCorpus returns the current corpus of a workspace.
func (s *Store) loadCorpus(ctx context.Context, workspace uuid.UUID) (*corpus, error) {
	v, err := s.q.DocumentsVersion(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read version of documents: %w", err)
	}
	if c := s.cache.get(workspace, v); c != nil {
		return c, nil
	}
	// The documents read now may be newer than v, never older: the worst result is another read.
	docs, err := s.q.DocumentsAll(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	// By bytes, for any collation of the database.
	slices.SortFunc(docs, func(a, b db.DocumentsAllRow) int { return strings.Compare(a.Path, b.Path) })
	c := &corpus{version: v, docs: docs}
	for _, d := range docs {
		c.bytes += len(d.Content)
	}
	c.index = sync.OnceValue(func() *search.Index {
		var sections []search.Section
		for _, d := range docs {
			sections = append(sections, search.Split(d.Path, d.Content)...)
		}
		return search.New(sections)
	})
	s.cache.put(workspace, c)
	return c, nil
}

func (c *cache) get(workspace uuid.UUID, v db.DocumentsVersionRow) *corpus {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[workspace]
	if e == nil || e.version.Documents != v.Documents || e.version.Versions != v.Versions || !e.version.Newest.Equal(v.Newest) {
		return nil
	}
	c.touch(workspace)
	return e
}

func (c *cache) put(workspace uuid.UUID, e *corpus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[uuid.UUID]*corpus)
	}
	c.entries[workspace] = e
	c.touch(workspace)
	total := 0
	for _, e := range c.entries {
		total += e.bytes
	}
	for total > cacheBytes && len(c.order) > 1 {
		total -= c.entries[c.order[0]].bytes
		delete(c.entries, c.order[0])
		c.order = c.order[1:]
	}
}

// touch makes a workspace the most recently used one.
func (c *cache) touch(workspace uuid.UUID) {
	kept := c.order[:0]
	for _, w := range c.order {
		if w != workspace {
			kept = append(kept, w)
		}
	}
	c.order = append(kept, workspace)
}
