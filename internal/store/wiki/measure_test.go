package wiki_test

import (
	"context"
	"flag"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

var (
	measured = flag.Int("wiki.measure", 0, "measure searches with this number of documents")
	sources  = flag.String("wiki.sources", filepath.Join(build.Default.GOROOT, "src"),
		"directory of the Go sources whose doc comments are the documents")
)

// BenchmarkSearch prints the times of searches in many documents of real text, and the memory of
// the process before and after them.
func BenchmarkSearch(b *testing.B) {
	if *measured == 0 {
		b.Skip("name the number of documents: -wiki.measure 100000")
	}
	pool := dbtest.New(b)
	var ws uuid.UUID
	if err := pool.QueryRow(b.Context(),
		`INSERT INTO workspaces (id, slug, name) VALUES (gen_random_uuid(), 'docs', '') RETURNING id`).Scan(&ws); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	queries := fill(b, pool, ws)
	fmt.Printf("documents written after %s\n", time.Since(began).Round(time.Second))
	s := wiki.New(pool)
	for {
		n, err := s.IndexStale(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	var sections, size int64
	if _, err := pool.Exec(b.Context(), `VACUUM ANALYZE document_sections, documents`); err != nil {
		b.Fatal(err)
	}
	if err := pool.QueryRow(b.Context(), `SELECT count(*), pg_total_relation_size('document_sections') FROM document_sections`).Scan(
		&sections, &size); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("%d sections of %d MiB indexed after %s\n", sections, size>>20, time.Since(began).Round(time.Second))
	runQueries(b, s, ws, queries[:50])
	before := residentKiB(b)
	took := runQueries(b, s, ws, queries)
	fmt.Printf("%d searches: p50 %s, p95 %s, p99 %s, max %s; resident memory %d KiB before, %d after\n",
		len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)*99/100], took[len(took)-1], before, residentKiB(b))
}

// runQueries runs the queries one after the other, and returns their times, sorted.
func runQueries(b testing.TB, s *wiki.Store, ws uuid.UUID, queries []string) (took []time.Duration) {
	b.Helper()
	slowest, which := time.Duration(0), ""
	for _, q := range queries {
		began := time.Now()
		if _, err := s.Search(b.Context(), ws, q, "", 10); err != nil {
			b.Fatal(err)
		}
		d := time.Since(began)
		if took = append(took, d); d > slowest {
			slowest, which = d, q
		}
	}
	fmt.Printf("slowest: %q\n", which)
	slices.Sort(took)
	return took
}

// fill stores the documents, and returns queries of two to six successive words of their texts.
func fill(b testing.TB, pool *pgxpool.Pool, ws uuid.UUID) (queries []string) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	seen := make(map[string]bool)
	var rows [][]any
	flush := func() {
		_, err := pool.CopyFrom(context.Background(), pgx.Identifier{"documents"}, []string{"workspace_id", "path", "title", "content"},
			pgx.CopyFromRows(rows))
		if err != nil {
			b.Fatal(err)
		}
		rows = nil
	}
	goDocs(b, *sources, func(path, content string) bool {
		if seen[path] || len(path) > wiki.MaxPath {
			return true
		}
		seen[path] = true
		rows = append(rows, []any{ws, path, path, content})
		if words := strings.Fields(content)[2:]; rng.IntN(100) == 0 && len(words) > 8 {
			at, n := rng.IntN(len(words)-6), 2+rng.IntN(5)
			queries = append(queries, strings.Join(words[at:at+n], " "))
		}
		if len(rows) == 500 {
			flush()
		}
		return len(seen) < *measured
	})
	flush()
	fmt.Printf("%d documents, %d queries such as %q\n", len(seen), len(queries), queries[:5])
	return queries
}

// residentKiB returns the memory of this process, after a collection.
func residentKiB(b *testing.B) (kib int) {
	b.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib
}
