package filestore_test

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// world is a store on a database of its own, and one workspace.
type world struct {
	*filestore.Store
	pool *pgxpool.Pool
	keys *vault.Keyring
	ws   uuid.UUID

	guard *egress.Guard // nil if nothing is fetched
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{pool: dbtest.New(t), keys: keyring(t, vault.GenerateKey())}
	w.ws = w.tenant(t, "acme")
	w.Store = filestore.New(w.pool, w.keys, filestore.Options{})
	return w
}

func keyring(t testing.TB, keys ...string) *vault.Keyring {
	t.Helper()
	k, err := vault.ParseKeys(strings.Join(keys, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (w *world) tenant(t testing.TB, slug string) uuid.UUID {
	t.Helper()
	ws, err := workspace.New(w.pool).Create(context.Background(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return ws.ID
}

// request returns a ticket request for a text.
func (w *world) request(size int) filestore.Request {
	return filestore.Request{Workspace: w.ws, Key: "7F3kQ2zB", Filename: "notes.txt", MIME: "text/plain", Size: new(int64(size))}
}

// ticket creates a ticket.
func (w *world) ticket(t testing.TB, r filestore.Request) filestore.Ticket {
	t.Helper()
	ticket, err := w.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// split splits an address as a request does.
func split(t testing.TB, address string) (path, query string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.EscapedPath(), u.RawQuery
}

// send uploads bytes to the address of a ticket.
func (w *world) send(t testing.TB, ticket filestore.Ticket, body []byte) (filestore.File, error) {
	t.Helper()
	path, query := split(t, ticket.Upload.URL)
	return w.Upload(t.Context(), path, query, int64(len(body)), bytes.NewReader(body))
}

// put makes a text file that is ready.
func (w *world) put(t testing.TB, name, content string) filestore.File {
	t.Helper()
	r := w.request(len(content))
	r.Filename = name
	f, err := w.send(t, w.ticket(t, r), []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// count queries the database for one number.
func (w *world) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// leftovers counts the uploads without a file.
func (w *world) leftovers(t testing.TB) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM file_uploads u WHERE NOT EXISTS (SELECT FROM files f WHERE f.upload_id = u.id)`)
}

func (w *world) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// code returns the code of a fault, or "" for any other error.
func code(err error) fault.Code {
	if f := fault.From(err); f != nil {
		return f.Code
	}
	return ""
}
