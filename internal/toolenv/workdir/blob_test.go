package workdir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// waits returns once a statement in the database waits for a lock.
func (w *world) waits(t testing.TB, query string) {
	t.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`
	wait.For(t, query+" waits for a lock", func() bool { return w.count(t, waiting, "%"+query+"%") > 0 })
}

// If a save takes too long, the blobs that it has sent and not yet named can be removed: it then
// sends them again.
func TestWhatWasRemovedBeforeItWasNamedIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "small", "content")
	write(t, dir, "large", strings.Repeat("content", 100_000))
	held, err := w.pool.Begin(t.Context())
	must(t, err)
	defer held.Rollback(context.WithoutCancel(t.Context()))
	if _, err := held.Exec(t.Context(), `SELECT FROM workdirs FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 1)
	go func() {
		_, err := f.Save(t.Context())
		saved <- err
	}()
	w.waits(t, "WorkdirSave")
	if n, err := w.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d blobs were removed before their time, %v", n, err)
	}
	w.age(t)
	if n, err := w.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("%d blobs were removed, %v", n, err)
	}
	must(t, held.Commit(t.Context()))
	if err := wait.Receive(t, "the save", saved); err != nil {
		t.Fatal(err)
	}
	equal(t, w.stored(t), tree(t, dir))
}

// Saves of the same contents, removals and collections run at once: no save names a removed blob,
// and named blobs stay. The savers continue until some blobs were collected between their saves.
func TestSavesAndCollectionsAtOnce(t *testing.T) {
	t.Parallel()
	slow.Test(t, "races many writers")
	w := newWorld(t, workdir.Options{})
	const savers, rounds, contents, enough = 3, 25, 4, 3
	var work sync.WaitGroup
	var dropped atomic.Int64
	saved := make(chan struct{}, 1)
	for n := range savers {
		own := &world{Store: w.Store, dsn: w.dsn, pool: w.pool, ws: w.ws, session: w.begin(t, w.ws)}
		f, dir := own.restore(t)
		work.Go(func() {
			for i := 0; i < rounds || dropped.Load() < enough; i++ {
				for c := range contents {
					path := filepath.Join(dir, fmt.Sprint(c))
					content := fmt.Sprint("content ", c)
					if c == 0 {
						content = strings.Repeat(content, 30_000)
					}
					err := os.WriteFile(path, []byte(content), 0o644)
					if (i+c)%2 == 0 { // the same for all savers, so that it can be missing everywhere
						err = os.Remove(path)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := f.Save(t.Context()); err != nil {
					t.Errorf("saver %d: %v", n, err)
					return
				}
				select {
				case saved <- struct{}{}:
				default:
				}
			}
			equal(t, own.stored(t), tree(t, dir))
		})
	}
	var collect sync.WaitGroup
	collect.Go(func() {
		for range saved { // only some of them and only sometimes, or no save would end
			_, err := w.pool.Exec(t.Context(), `UPDATE work_blobs SET loose_at = loose_at - interval '2 hours' WHERE id IN (
				SELECT id FROM work_blobs WHERE loose_at IS NOT NULL AND sha256 IS NOT NULL AND random() < 0.5 FOR UPDATE SKIP LOCKED)`)
			if err != nil {
				t.Error(err)
				return
			}
			n, err := w.Sweep(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			dropped.Add(int64(n))
		}
	})
	wait.Until(t, "the writers", work.Wait)
	close(saved)
	wait.Until(t, "the collector", collect.Wait)
	w.age(t)
	if _, err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count(t, `SELECT (SELECT count(*) FROM work_blobs) - (SELECT count(DISTINCT sha256) FROM work_files)`); n != 0 {
		t.Errorf("%d blobs too many are left", n)
	}
}

// A blob that has lost one name and has another stays, and is not checked every hour.
func TestWhatHasAnotherNameStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "content")
	write(t, dir, "b", "content")
	write(t, dir, "c", "other")
	save(t, f)
	if n := w.count(t, `SELECT count(*) FROM work_blobs WHERE loose_at IS NOT NULL`); n != 0 {
		t.Errorf("%d blobs are unreferenced after a save", n)
	}
	must(t, os.Remove(filepath.Join(dir, "a")))
	must(t, os.Remove(filepath.Join(dir, "c")))
	save(t, f)
	if n := w.count(t, `SELECT count(*) FROM work_blobs WHERE loose_at IS NOT NULL`); n != 2 {
		t.Errorf("%d blobs are loose", n)
	}
	w.age(t)
	if n, err := w.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("%d blobs were removed, %v", n, err)
	}
	if n := w.count(t, `SELECT count(*) FROM work_blobs WHERE loose_at IS NOT NULL`); n != 0 {
		t.Errorf("%d blobs are unreferenced after a check", n)
	}
	if n := w.count(t, `SELECT count(*) FROM work_chunks`); n != 1 {
		t.Errorf("%d chunks are left", n)
	}
	equal(t, w.stored(t), tree(t, dir))
}

// A save that died in the middle of a large file leaves bytes for an hour.
func TestWhatABrokenSaveHasSentGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	pool, blade := cuttable(t, w.dsn)
	w.Store = workdir.New(pool, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "large", strings.Repeat("content", 300_000))
	for at := 1; w.count(t, `SELECT count(*) FROM work_chunks`) < 3; at++ {
		blade.arm(at, nil)
		_, err := f.Save(t.Context())
		blade.arm(0, nil)
		if err == nil {
			t.Fatal("the save succeeded")
		}
	}
	w.age(t)
	if n, err := w.Sweep(t.Context()); n == 0 || err != nil {
		t.Errorf("%d blobs were removed, %v", n, err)
	}
	if n := w.count(t, `SELECT count(*) FROM work_chunks`); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
}

// Erasing a session removes its folder and the blobs that no other session has; an open folder of
// it can no longer be saved.
func TestErasingAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	other := &world{Store: w.Store, pool: w.pool, ws: w.ws, session: w.begin(t, w.ws)}
	f, dir := w.restore(t)
	write(t, dir, "own", "own")
	write(t, dir, "large", strings.Repeat("own", 100_000))
	write(t, dir, "shared", "shared")
	save(t, f)
	g, there := other.restore(t)
	write(t, there, "shared too", "shared")
	save(t, g)
	erase := func(workspace uuid.UUID) {
		t.Helper()
		must(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error { return w.Erase(t.Context(), tx, workspace, w.session) }))
	}
	before := w.stored(t)
	erase(w.tenant(t, "foreign"))
	equal(t, w.stored(t), before)

	erase(w.ws)
	equal(t, w.stored(t), "")
	if n := w.count(t, `SELECT count(*) FROM work_blobs`); n != 1 {
		t.Errorf("%d blobs are left", n)
	}
	if n := w.count(t, `SELECT count(*) FROM work_chunks`); n != 1 {
		t.Errorf("%d chunks are left", n)
	}
	equal(t, other.stored(t), tree(t, there))
	if _, err := f.Save(t.Context()); err != workdir.ErrFenced {
		t.Errorf("a save of the open folder: %v", err)
	}
	w.exec(t, `UPDATE sessions SET erased_at = now() WHERE id = $1`, w.session)
	if _, err := w.Restore(t.Context(), w.claim(), t.TempDir()); err != workdir.ErrFenced {
		t.Errorf("a claim to an erased session: %v", err)
	}
	erase(w.ws) // again, without effect
	equal(t, other.stored(t), tree(t, there))
	w.exec(t, `DELETE FROM workspaces WHERE id = $1`, w.ws)
	if n := w.count(t,
		`SELECT (SELECT count(*) FROM work_blobs) + (SELECT count(*) FROM work_files) + (SELECT count(*) FROM workdirs)`); n != 0 {
		t.Errorf("%d rows of the workspace are left", n)
	}
}

// Stored bytes that differ from the saved ones are not returned.
func TestBrokenBytesAreNotRestored(t *testing.T) {
	t.Parallel()
	slow.Test(t, "needs a database for each fault")
	for name, sql := range map[string]string{
		"a bit":         `UPDATE work_chunks SET data = set_byte(data, 5, 7)`,
		"a part":        `UPDATE work_chunks SET data = substring(data FROM 1 FOR octet_length(data) - 1)`,
		"a chunk":       `DELETE FROM work_chunks WHERE n = 0`,
		"another order": `UPDATE work_chunks SET data = data || data`,
	} {
		for size, content := range map[string]string{"small": "content", "large": strings.Repeat("content", 100_000)} {
			t.Run(name+" of a "+size+" one", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, workdir.Options{})
				f, dir := w.restore(t)
				write(t, dir, "a", content)
				save(t, f)
				w.exec(t, sql)
				if _, err := w.Restore(t.Context(), w.claim(), t.TempDir()); err == nil {
					t.Error("it was restored")
				}
				c, err := w.Open(t.Context(), w.ws, w.session, "a")
				must(t, err)
				var b strings.Builder
				if err := c.Copy(t.Context(), &b); err == nil {
					t.Error("it was read")
				}
			})
		}
	}
}
