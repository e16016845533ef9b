package wiki

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/search"
)

const (
	fusedSections = 50               // of each of the two ranks
	queryTime     = 3 * time.Second  // for the vector of a query
	queryPause    = 30 * time.Second // without vectors after a failure
)

// vectors searches by meaning and makes the vectors of passages. A nil one does neither.
type vectors struct {
	q        *db.Queries
	embedder model.Embedder
	log      *slog.Logger
	metrics  *metrics.Metrics
	worker   uuid.UUID // this process
	adopted  bool      // of Run: vector_index has the model of this process, or a later one

	searching *outage.Log
	resumes   atomic.Int64 // Unix time in nanoseconds: no query has a vector before it
	lacks     string       // the last report of what the database lacks
}

// UseVectors makes searches find passages by their meaning, too, if the database has pgvector. Run then
// also makes the vectors of all documents. Call it before the first search.
func (s *Store) UseVectors(embedder model.Embedder, log *slog.Logger, m *metrics.Metrics) {
	s.vectors = &vectors{q: s.q, embedder: embedder, log: log, metrics: m, worker: uuid.New(),
		searching: outage.New(log, "make the vector of a query")}
}

// nearQuery is a search by the vector of a query. A nil one finds nothing.
type nearQuery struct {
	v      *vectors
	result chan string // the vector as PostgreSQL reads it; "": none
}

// startQuery asks for the vector of a query, while the caller ranks by words.
func (v *vectors) startQuery(ctx context.Context, query string) *nearQuery {
	if v == nil || strings.TrimSpace(query) == "" || time.Now().UnixNano() < v.resumes.Load() {
		return nil
	}
	n := &nearQuery{v, make(chan string, 1)}
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	go func() {
		defer cancel()
		vector, err := v.queryVector(ctx, query)
		v.noteQuery(ctx, err)
		n.result <- vector
	}()
	return n
}

// queryVector returns the vector of a query, or "" if no passage has one of the same model.
func (v *vectors) queryVector(ctx context.Context, query string) (string, error) {
	now, err := v.q.VectorsAre(ctx)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && (now.Model != v.embedder.Name() || now.Dimensions == 0) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	list, err := v.embed(ctx, "search", []string{query})
	if err != nil {
		return "", err
	}
	if len(list[0]) != int(now.Dimensions) {
		return "", nil // the next passage makes a new index
	}
	return vectorText(list[0]), nil
}

// noteQuery records the result of a search by vector. After a failure, searches pause it: a provider
// that does not answer would delay each one.
func (v *vectors) noteQuery(ctx context.Context, err error) {
	if errors.Is(err, context.Canceled) {
		return // the caller of the search has gone
	}
	if err != nil {
		v.resumes.Store(time.Now().Add(queryPause).UnixNano())
	}
	v.searching.Note(context.WithoutCancel(ctx), err)
}

// ranked returns how many sections the rank by words must have.
func (n *nearQuery) ranked() int {
	if n == nil {
		return 0
	}
	return fusedSections
}

// sections returns the sections nearest to the query, nearest first; none after a failure.
func (n *nearQuery) sections(ctx context.Context, p db.SectionsNearParams) []ranked {
	if n == nil {
		return nil
	}
	if p.Vector = <-n.result; p.Vector == "" {
		return nil
	}
	p.Most = fusedSections
	rows, err := n.v.q.SectionsNear(ctx, p)
	if err != nil {
		n.v.noteQuery(ctx, err)
		return nil
	}
	list := make([]ranked, len(rows))
	for i, r := range rows {
		list[i] = ranked{place{r.Path, r.N}, Hit{Similarity: r.Similarity, Source: search.ByVector}}
	}
	return list
}

// embed makes vectors and counts the request.
func (v *vectors) embed(ctx context.Context, use string, texts []string) ([][]float32, error) {
	list, tokens, err := v.embedder.Embed(ctx, texts)
	if v.metrics != nil {
		outcome := "ok"
		if err != nil {
			outcome = "failed"
		}
		v.metrics.Embeddings.WithLabelValues(use, outcome).Inc()
		v.metrics.EmbeddingTokens.WithLabelValues(use).Add(float64(tokens))
	}
	return list, err
}

// vectorText is a vector as PostgreSQL reads it.
func vectorText(vector []float32) string {
	b := make([]byte, 0, 12*len(vector)+2)
	for i, x := range vector {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}
