package filestore_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
)

// turn makes a session with the parts of a turn that files need.
func (w *world) turn(t testing.TB) (session, turn uuid.UUID) {
	t.Helper()
	session, turn = uuid.New(), uuid.New()
	w.exec(t, `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, session, w.ws)
	w.exec(t, `INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns) VALUES ($1, $2, $3, `+
		`'completed', 1, 1)`, turn, session, w.ws)
	return session, turn
}

func TestADeletedFileIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.put(t, "a.txt", strings.Repeat("Hello", chunk/4))
	other := w.put(t, "b.txt", "Hi")
	d, err := w.Download(t.Context(), w.ws, f.FileID)
	if err != nil {
		t.Fatal(err)
	}
	path, query := split(t, d.DownloadURL)
	c, err := w.Open(t.Context(), path, query)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), uuid.New(), f.FileID); code(err) != fault.FileNotFound {
		t.Errorf("by another workspace: %v", err)
	}
	if err := w.Delete(t.Context(), w.ws, f.FileID); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), w.ws, f.FileID); code(err) != fault.FileNotFound {
		t.Errorf("again: %v", err)
	}
	if _, err := w.Open(t.Context(), path, query); code(err) != fault.FileNotFound {
		t.Errorf("its address: %v", err)
	}
	if _, err := c.Reader(t.Context()).Read(make([]byte, 1)); err == nil {
		t.Error("a reader that had opened it still reads it")
	}
	if _, err := w.Get(t.Context(), w.ws, f.FileID); code(err) != fault.FileNotFound {
		t.Errorf("Get: %v", err)
	}
	if page, err := w.List(t.Context(), w.ws, "", 10, ""); err != nil || len(page.Data) != 1 || page.Data[0].FileID != other.FileID {
		t.Errorf("%+v, %v", page, err)
	}
	if n := w.count(t, `SELECT count(*) FROM file_chunks`); n != 1 {
		t.Errorf("%d chunks are left", n)
	}
}

// Erasing a session removes the files that belong to it alone, including all files from its
// messages.
func TestErasingASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session, turn := w.turn(t)
	_, elsewhere := w.turn(t)
	own, shared, foreign := w.put(t, "own.txt", "own"), w.put(t, "shared.txt", "shared"), w.put(t, "foreign.txt", "foreign")
	w.attach(t, turn, own.FileID, shared.FileID)
	w.attach(t, elsewhere, shared.FileID, foreign.FileID)
	if _, err := w.Produce(t.Context(), w.ws, session, turn, "call", "out.txt", "", strings.NewReader("out")); err != nil {
		t.Fatal(err)
	}
	erase := func(workspace uuid.UUID) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return w.Erase(t.Context(), tx, workspace, session) }); err != nil {
			t.Fatal(err)
		}
	}
	erase(uuid.New())
	if n := w.count(t, `SELECT count(*) FROM files WHERE state = 'ready'`); n != 4 {
		t.Errorf("another workspace's session: %d files are left", n)
	}
	erase(w.ws)
	if string(w.read(t, shared.FileID)) != "shared" || string(w.read(t, foreign.FileID)) != "foreign" {
		t.Error("too much was erased")
	}
	if n := w.count(t, `SELECT count(*) FROM files`); n != 2 {
		t.Errorf("%d files are left", n)
	}
	if of, err := w.OfTurns(t.Context(), w.ws, []uuid.UUID{turn, elsewhere}); err != nil || len(of) != 1 || len(of[elsewhere].In) != 2 {
		t.Errorf("%+v, %v", of, err)
	}
	if n := w.count(t, `SELECT count(*) FROM file_chunks`); n != 2 {
		t.Errorf("%d chunks are left", n)
	}
	if list, err := w.Produced(t.Context(), w.pool, turn); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	erase(w.ws) // a second time, without an effect
	w.exec(t, `UPDATE sessions SET erased_at = now() WHERE id = $1`, session)
	if _, err := w.Produce(t.Context(), w.ws, session, turn, "late", "late.txt", "",
		strings.NewReader("late")); code(err) != fault.FileRejected {
		t.Errorf("a tool that still runs: %v", err)
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}
