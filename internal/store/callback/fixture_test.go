package callback_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a database, a workspace with a session, and a receiver of callbacks that is reached as
// example.com.
type world struct {
	pool      *pgxpool.Pool
	store     *callback.Store
	workspace uuid.UUID
	session   uuid.UUID
	receiver  *receiver
}

const address = "https://example.com/hook?token=hush"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{pool: dbtest.New(t), receiver: &receiver{}}
	srv := httptest.NewUnstartedServer(w.receiver)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	guard, err := egress.New(egress.Config{Roots: roots, Allow: []string{
		"example.com:443=" + srv.Listener.Addr().String(),
		"closed.example:443=127.0.0.1:1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	w.store = callback.NewStore(w.pool, keys, guard)
	w.workspace, w.session = w.tenant(t, "w")
	return w
}

// tenant creates a workspace with a session.
func (w *world) tenant(t *testing.T, slug string) (ws, session uuid.UUID) {
	t.Helper()
	row, err := workspace.New(w.pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	session = uuid.Must(uuid.NewV7())
	w.exec(t, `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, session, row.ID)
	return row.ID, session
}

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) tx(t *testing.T, fn func(pgx.Tx) error) {
	t.Helper()
	if err := pgx.BeginFunc(t.Context(), w.pool, fn); err != nil {
		t.Fatal(err)
	}
}

// register creates a callback.
func (w *world) register(t *testing.T, url string, metadata map[string]string) callback.New {
	t.Helper()
	n := callback.New{ID: uuid.Must(uuid.NewV7()), Workspace: w.workspace, Session: w.session, Turn: uuid.Must(uuid.NewV7()), URL: url,
		Metadata: metadata}
	w.tx(t, func(tx pgx.Tx) error { return w.store.Register(t.Context(), tx, n) })
	return n
}

// job is the default job of a delivery.
const job = 7

// report creates a delivery.
func (w *world) report(t *testing.T, turn uuid.UUID, typ callback.Type, seq int64) (delivery uuid.UUID) {
	t.Helper()
	w.tx(t, func(tx pgx.Tx) error {
		made, err := w.store.Report(t.Context(), tx, turn, typ, seq)
		if err != nil || len(made) != 1 {
			return fmt.Errorf("not reported: %v %v", made, err)
		}
		delivery = made[0]
		return w.store.Assign(t.Context(), tx, delivery, job)
	})
	return delivery
}

// answer returns the data of every report.
func answer(context.Context, callback.Delivery) ([]byte, error) {
	return []byte(`{"success":true,"output":"Hello.","session_id":"s","error":null}`), nil
}

func (w *world) deliver(t *testing.T, delivery uuid.UUID) (retry time.Duration, done bool) {
	t.Helper()
	retry, done, err := w.store.Deliver(t.Context(), delivery, job, answer)
	if err != nil {
		t.Fatal(err)
	}
	return retry, done
}

func (w *world) get(t *testing.T, id uuid.UUID) callback.Callback {
	t.Helper()
	c, err := w.store.Get(t.Context(), w.workspace, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// receiver records its requests and answers with the configured status, by default 204.
type receiver struct {
	mu     sync.Mutex
	got    []received
	answer http.HandlerFunc
}

type received struct {
	path   string
	header http.Header
	body   []byte
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.got = append(r.got, received{req.URL.String(), req.Header, body})
	h := r.answer
	r.mu.Unlock()
	if h == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h(w, req)
}

func (r *receiver) answers(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

func (r *receiver) status(code int) {
	r.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}
