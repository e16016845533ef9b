package wiki_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/migrations"
)

// library is a store with a fake model of embeddings.
type library struct {
	*wiki.Store
	model *modeltest.Embedding
	ws    uuid.UUID
	log   *bytes.Buffer
}

func openLibrary(t *testing.T, pool *pgxpool.Pool, name string, e *modeltest.Embedding) library {
	t.Helper()
	server := modeltest.Embeddings(e)
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	l := library{Store: wiki.New(pool), model: e, log: new(bytes.Buffer)}
	l.UseVectors(openai.NewEmbedder(openai.Config{Model: name, BaseURL: server.URL + "/v1", HTTPClient: client}),
		slog.New(slog.NewTextHandler(l.log, nil)), metrics.New())
	return l
}

// embedAll makes all vectors, and returns the texts that were sent.
func (l library) embedAll(t *testing.T) []string {
	t.Helper()
	l.model.Texts()
	for more := true; more; {
		var err error
		if more, err = l.EmbedSome(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return l.model.Texts()
}

// find returns the documents that a query finds, each with its source.
func (l library) find(t *testing.T, query string) string {
	t.Helper()
	hits, err := l.Search(t.Context(), l.ws, query, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, h := range hits {
		if strings.TrimSpace(h.Passage()) == "" || (h.Source != search.ByWords) != (h.Similarity != 0) {
			t.Errorf("%q finds %+v", query, h)
		}
		found = append(found, strings.TrimSuffix(h.Doc, ".md")+" by "+string(h.Source))
	}
	return strings.Join(found, ", ")
}

func newEmbedding() *modeltest.Embedding {
	return &modeltest.Embedding{Size: 96, Synonyms: map[string]string{"vacation": "holiday", "holidays": "holiday", "days": "day",
		"errors": "error"}}
}

// TestSearchWorksWithoutPgvector has a model and a PostgreSQL without pgvector: nothing is sent to the
// model, and one line of the log explains it.
func TestSearchWorksWithoutPgvector(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	var has bool
	if err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')`).Scan(&has); err != nil {
		t.Fatal(err)
	}
	if has {
		need.Missing(t, "this test needs a PostgreSQL without pgvector")
	}
	l := openLibrary(t, pool, "small", newEmbedding())
	l.ws = tenant(t, pool, "acme")
	put(t, l.Store, l.ws, "a.md", "# Leave\n\nA vacation has 30 days.")
	for range 2 {
		if texts := l.embedAll(t); len(texts) > 0 {
			t.Errorf("the model received %q", texts)
		}
	}
	if got := l.find(t, "vacation"); got != "a by full text" {
		t.Errorf("found %q", got)
	}
	if texts, lines := l.model.Texts(), strings.Count(l.log.String(), "\n"); len(texts) > 0 || lines != 1 ||
		!strings.Contains(l.log.String(), "no pgvector 0.8 or later") {
		t.Errorf("the model received %q; log: %s", texts, l.log)
	}
}

// TestSearchByVectors runs the search with pgvector and a model in which synonyms have the same vector.
func TestSearchByVectors(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts a PostgreSQL")
	server := dbtest.NewVectorServer(t)
	for name, test := range map[string]func(*testing.T, *pgxpool.Pool){
		"ranks are fused": testFusedRanks, "vectors follow documents": testVectorsFollow, "failures": testEmbeddingFails,
		"refused vectors": testVectorIsRefused,
		"another model":   testAnotherModel, "rights": testVectorRights,
	} {
		t.Run(name, func(t *testing.T) { test(t, dbtest.Pool(t, server.DSN())) })
	}
}

// testFusedRanks finds a synonym, which the full text misses. An exact word still comes first, and
// phrases, exclusions, prefixes and workspaces hold for vectors.
func testFusedRanks(t *testing.T, pool *pgxpool.Pool) {
	l := openLibrary(t, pool, "small", newEmbedding())
	l.ws = tenant(t, pool, "acme")
	put(t, l.Store, l.ws, "leave.md", "# Leave\n\nEach employee has thirty vacation days.")
	put(t, l.Store, l.ws, "printer.md", "# Printer\n\nThe printer reports errors in red.")
	for _, color := range strings.Fields("red green blue white black grey") {
		put(t, l.Store, l.ws, "printers/"+color+".md", "# The "+color+" printer\n\nThe "+color+" printer has an error now and then.")
	}
	put(t, l.Store, l.ws, "codes.md", "# Codes\n\nE4711 stands for an empty tray, and other codes for a jam, for toner and for the fuser.")
	other := tenant(t, pool, "other")
	put(t, l.Store, other, "theirs.md", "# Leave\n\nOur holidays are secret.")
	if got := l.find(t, "holidays"); got != "" {
		t.Errorf("before the vectors %q", got)
	}
	l.embedAll(t)
	for query, want := range map[string]string{
		"holidays":                   "leave by vectors",
		"holidays each employee has": "leave by both",
		"printer error E4711":        "codes by both",
		"E4711":                      "codes by both",
		`"vacation days"`:            "leave by both",
		"holidays -employee":         "",
	} {
		if got := l.find(t, query); !strings.HasPrefix(got, want) || strings.Contains(got, "theirs") ||
			want == "" && strings.Contains(got, "leave") {
			t.Errorf("%q finds %q, want %q first", query, got, want)
		}
	}
	hits, err := l.Search(t.Context(), l.ws, "holidays", "printer.", 10)
	if err != nil || len(hits) != 1 || hits[0].Doc != "printer.md" {
		t.Errorf("with a prefix: %v, %v", hits, err)
	}
}

// testVectorsFollow changes documents: only passages with another text are sent again, and deleted
// documents and workspaces have no vectors.
func testVectorsFollow(t *testing.T, pool *pgxpool.Pool) {
	l := openLibrary(t, pool, "small", newEmbedding())
	l.ws = tenant(t, pool, "acme")
	const first, second = "# Title\n\nOne.\n\n# Vacation\n\nThirty days.", "# Title\n\nOne.\n\n# Sickness\n\nCall before nine."
	put(t, l.Store, l.ws, "a.md", first)
	if texts := l.embedAll(t); !slices.Contains(texts, "Title\nVacation\nThirty days.") || !slices.Contains(texts, "Title\nTitle\nOne.") {
		t.Errorf("sent %q", texts)
	}
	count := func() (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM section_vectors`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	put(t, l.Store, l.ws, "a.md", second)
	if got := l.find(t, "holiday"); strings.Contains(got, "both") {
		t.Errorf("a passage that is gone is found: %q", got)
	}
	if texts := l.embedAll(t); !slices.Equal(texts, []string{"Title\nSickness\nCall before nine."}) || count() != 2 {
		t.Errorf("after the change %q were sent, and there are %d vectors", texts, count())
	}
	if _, err := pool.Exec(t.Context(), `UPDATE workspaces SET search_language = 'german' WHERE id = $1`, l.ws); err != nil {
		t.Fatal(err)
	}
	if _, err := l.IndexStale(t.Context()); err != nil {
		t.Fatal(err)
	}
	if texts := l.embedAll(t); len(texts) != 0 {
		t.Errorf("after a change of the language %q were sent", texts)
	}
	if err := l.Delete(t.Context(), l.ws, "a.md"); err != nil || count() != 0 {
		t.Errorf("%d vectors of a deleted document, %v", count(), err)
	}
	put(t, l.Store, l.ws, "b.md", first)
	l.embedAll(t)
	if _, err := pool.Exec(t.Context(), `DELETE FROM workspaces WHERE id = $1`, l.ws); err != nil || count() != 0 {
		t.Errorf("%d vectors of a deleted workspace, %v", count(), err)
	}
}

// testEmbeddingFails lets the provider fail. Searches find words, with one line of the log for all of
// them. A passage that the provider rejects has no vector, and the others have.
func testEmbeddingFails(t *testing.T, pool *pgxpool.Pool) {
	l := openLibrary(t, pool, "small", newEmbedding())
	l.ws = tenant(t, pool, "acme")
	l.model.Reject = "poison"
	put(t, l.Store, l.ws, "leave.md", "# Leave\n\nThirty vacation days.")
	put(t, l.Store, l.ws, "poison.md", "# Bad\n\nThis is poison.")
	put(t, l.Store, l.ws, "zebra.md", "# Animals\n\nA zebra has stripes.")
	l.embedAll(t)
	if got := l.find(t, "holiday zebra"); got != "zebra by both, leave by vectors" {
		t.Errorf("found %q", got)
	}
	l.model.Fail(http.StatusServiceUnavailable)
	l.log.Reset()
	for range 3 {
		if got := l.find(t, "vacation"); got != "leave by full text" {
			t.Errorf("while the provider fails, found %q", got)
		}
		l.ResumeVectors()
	}
	if n := strings.Count(l.log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, l.log)
	}
	put(t, l.Store, l.ws, "new.md", "# New\n\nA giraffe.")
	if _, err := l.EmbedSome(t.Context()); err == nil {
		t.Error("a failure makes no vectors")
	}
	l.model.Fail(0)
	if texts := l.embedAll(t); !slices.Equal(texts, []string{"New\nNew\nA giraffe."}) {
		t.Errorf("after the failure %q were sent", texts)
	}
	if got := l.find(t, "vacation"); !strings.HasPrefix(got, "leave by both") {
		t.Errorf("afterwards found %q", got)
	}
}

// testVectorIsRefused lets PostgreSQL refuse the vectors of one document.
func testVectorIsRefused(t *testing.T, pool *pgxpool.Pool) {
	l := openLibrary(t, pool, "small", newEmbedding())
	l.ws = tenant(t, pool, "acme")
	put(t, l.Store, l.ws, "first.md", "# First\n\nA giraffe.")
	l.embedAll(t)
	if _, err := pool.Exec(t.Context(),
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'odd vector' USING ERRCODE = '22023'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON section_vectors FOR EACH ROW WHEN (NEW.path = 'bad.md') EXECUTE FUNCTION refuse()`); err != nil {
		t.Fatal(err)
	}
	put(t, l.Store, l.ws, "bad.md", "# Bad\n\nA lion.")
	put(t, l.Store, l.ws, "leave.md", "# Leave\n\nThirty vacation days.")
	l.embedAll(t)
	if got := l.find(t, "holiday"); !strings.HasPrefix(got, "leave by vectors") {
		t.Errorf("found %q", got)
	}
	if n := strings.Count(l.log.String(), "path=bad.md"); n != 1 {
		t.Errorf("%d lines of the document: %s", n, l.log)
	}
}

// testAnotherModel changes the model. The process that started last makes its vectors, of another
// size; the other one searches by words and sends nothing.
func testAnotherModel(t *testing.T, pool *pgxpool.Pool) {
	old := openLibrary(t, pool, "small", newEmbedding())
	old.ws = tenant(t, pool, "acme")
	for _, name := range []string{"a.md", "b.md"} {
		put(t, old.Store, old.ws, name, "# Leave\n\nThirty vacation days.")
	}
	if n := len(old.embedAll(t)); n < 2 {
		t.Errorf("%d texts were sent", n)
	}
	large := newEmbedding()
	large.Size = 200
	next := openLibrary(t, pool, "large", large)
	next.ws = old.ws
	if got := next.find(t, "holiday"); got != "" {
		t.Errorf("the vectors of another model find %q", got)
	}
	next.embedAll(t)
	if got := next.find(t, "holiday"); got != "a by vectors, b by vectors" {
		t.Errorf("the next model finds %q; log: %s", got, next.log)
	}
	put(t, old.Store, old.ws, "c.md", "# Leave\n\nThirty vacation days.")
	if texts := old.embedAll(t); len(texts) != 0 {
		t.Errorf("the old process sends %q", texts)
	}
	if got := old.find(t, "vacation"); strings.Contains(got, "vectors") || len(old.model.Texts()) > 0 {
		t.Errorf("the old process finds %q", got)
	}
	// The old process returns from a request that it sent before it lost its turn.
	var stored bool
	if err := pool.QueryRow(t.Context(),
		`SELECT vectors_store('small', gen_random_uuid(), $1, 'wiki/c.md', ARRAY[gen_random_uuid()], ARRAY['[1]'])`,
		old.ws).Scan(&stored); err != nil || stored {
		t.Errorf("it stores vectors: %t, %v", stored, err)
	}
	if _, err := pool.Exec(t.Context(), `SELECT vectors_reset(9, 'small', gen_random_uuid())`); err != nil {
		t.Error(err)
	}
	if got := next.find(t, "holiday"); got != "a by vectors, b by vectors" {
		t.Errorf("afterwards the next model finds %q", got)
	}
	again := openLibrary(t, pool, "large", large) // another process: the first one has the turn
	if texts := again.embedAll(t); len(texts) != 0 {
		t.Errorf("two processes send %q", texts)
	}
}

// testVectorRights has a service with a role that owns nothing, and then tables whose owner may not
// create extensions: the log has the statement, and vectors are made after it was run.
func testVectorRights(t *testing.T, pool *pgxpool.Pool) {
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	dsn := pool.Config().ConnString()
	exec("CREATE ROLE service LOGIN; CREATE ROLE tables_owner LOGIN")
	if err := migrations.Grant(t.Context(), dsn, "service"); err != nil {
		t.Fatal(err)
	}
	config := pool.Config().Copy()
	config.ConnConfig.User = "service"
	service, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	exec("ALTER FUNCTION vectors_available OWNER TO tables_owner")
	l := openLibrary(t, service, "small", newEmbedding())
	l.ws = tenant(t, pool, "acme")
	put(t, l.Store, l.ws, "leave.md", "# Leave\n\nThirty vacation days.")
	if texts := l.embedAll(t); len(texts) != 0 || !strings.Contains(l.log.String(),
		"Run as a superuser in this database: CREATE EXTENSION vector;") {
		t.Errorf("sent %q, log: %s", texts, l.log)
	}
	exec("CREATE SCHEMA extensions; GRANT USAGE ON SCHEMA extensions TO PUBLIC; CREATE EXTENSION vector SCHEMA extensions")
	l.embedAll(t)
	if got := l.find(t, "holiday"); got != "leave by vectors" {
		t.Errorf("found %q; log: %s", got, l.log)
	}
}
