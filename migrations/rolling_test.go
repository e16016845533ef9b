package migrations_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/bulk"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/migrations"
)

// released is the schema of the previous release, and releaseSQL the statements of its servers.
const (
	released   = 14
	releaseSQL = "testdata/release14.sql"
)

// TestRollingUpgrade has a filled database of the previous release, and conversations that continue
// with the statements of that release while Up runs and afterwards, beside those of this release.
// No statement fails and no event is missing. It does not run the old program: its retries, its
// River client and its readers are not covered.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dsn := dbtest.Empty(t)
	if _, err := migrations.Up(ctx, dsn, migrations.Options{}.With(filesUpTo(t, released))); err != nil {
		t.Fatal(err)
	}
	pool := dbtest.Pool(t, dsn)
	filler, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close(context.WithoutCancel(ctx))
	if err := bulk.Fill(ctx, filler, 500); err != nil {
		t.Fatal(err)
	}

	old := readRelease(t)
	var held atomic.Int64 // conversations with old statements
	stop := make(chan struct{})
	load, loadCtx := errgroup.WithContext(ctx)
	for range 3 {
		load.Go(func() error { return converse(loadCtx, dsn, old, stop, &held) })
	}
	more := func(n int64) {
		t.Helper()
		for until := held.Load() + n; held.Load() < until; time.Sleep(5 * time.Millisecond) {
			if loadCtx.Err() != nil {
				t.Fatal(context.Cause(loadCtx))
			}
		}
	}
	more(10)
	if _, err := migrations.Up(ctx, dsn, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	events := eventlog.New(pool, eventlog.Options{})
	s := session.New(pool, events, session.Options{})
	if err := events.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	var begun []uuid.UUID
	for range 20 {
		turn := uuid.Must(uuid.NewV7())
		err := s.Open(ctx, session.Ref{Workspace: bulk.Workspace}, func(tx *session.Tx) error {
			_, _, err := tx.Begin(ctx, session.NewTurn{ID: turn, Message: event.Message{Content: "hello"}, MaxResponseSeconds: 600, MaxTurns: 50})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, turn)
		more(1)
	}
	close(stop)
	if err := wait.Result(t, "the load", load.Wait); err != nil {
		t.Fatal(err)
	}
	checkConversations(t, pool.QueryRow, held.Load(), begun)
	for name, sql := range old {
		if strings.HasPrefix(sql, "LOCK") {
			continue // it cannot be prepared
		}
		if _, err := filler.Exec(ctx, "PREPARE old AS "+sql+"; DEALLOCATE old", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%s of the previous release: %v", name, err)
		}
	}
}

// checkConversations checks all turns, and every event up to the session's last.
func checkConversations(t *testing.T, query func(context.Context, string, ...any) pgx.Row, held int64, begun []uuid.UUID) {
	t.Helper()
	var completed, queued, torn int64
	err := query(t.Context(), `SELECT (SELECT count(*) FROM turns WHERE key_id = 'rolling' AND state = 'completed'),
		(SELECT count(*) FROM turns WHERE id = ANY($1) AND state = 'queued'),
		(SELECT count(*) FROM sessions s WHERE s.title IN ('rolling', 'hello')
		 AND s.last_ord <> (SELECT count(DISTINCT e.ord) FROM events e WHERE e.session_id = s.id AND e.seq <= s.last_seq))`,
		begun).Scan(&completed, &queued, &torn)
	if err != nil || completed != held || queued != int64(len(begun)) || torn != 0 {
		t.Errorf("%d of %d turns completed, %d of %d queued, %d sessions lack events: %v", completed, held, queued, len(begun), torn, err)
	}
}

// converse holds one conversation after the other, as servers of the previous release did.
func converse(ctx context.Context, dsn string, old map[string]string, stop <-chan struct{}, held *atomic.Int64) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		c := conversation{old: old, session: uuid.Must(uuid.NewV7()), turn: uuid.Must(uuid.NewV7())}
		for _, step := range []func(context.Context, pgx.Tx) error{c.accept, c.claim, c.text, c.end} {
			if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return step(ctx, tx) }); err != nil {
				return err
			}
		}
		held.Add(1)
	}
}

// conversation is one message and its answer.
type conversation struct {
	old           map[string]string
	session, turn uuid.UUID
	ord           int64
}

// run runs a statement of the previous release.
func (c *conversation) run(ctx context.Context, tx pgx.Tx, name string, args ...any) error {
	rows, err := tx.Query(ctx, c.old[name], args...)
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// write appends events under the session's lock.
func (c *conversation) write(ctx context.Context, tx pgx.Tx, kinds ...string) error {
	if err := c.run(ctx, tx, "SessionLock", c.session); err != nil {
		return err
	}
	datas := make([]string, len(kinds))
	for i := range datas {
		datas[i] = `{"text":"word "}`
	}
	rows, err := tx.Query(ctx, c.old["EventsInsert"], c.session, c.turn, c.ord, kinds, datas)
	if err != nil {
		return fmt.Errorf("EventsInsert: %w", err)
	}
	var seq, ord int64
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&seq, &ord, &at}, func() error { return nil }); err != nil {
		return fmt.Errorf("EventsInsert: %w", err)
	}
	c.ord = ord
	return c.run(ctx, tx, "SessionAdvance", c.session, seq, ord)
}

func (c *conversation) accept(ctx context.Context, tx pgx.Tx) error {
	if err := c.run(ctx, tx, "SessionInsert", c.session, bulk.Workspace, nil, "rolling"); err != nil {
		return err
	}
	if err := c.write(ctx, tx, "message", "open"); err != nil {
		return err
	}
	if err := c.run(ctx, tx, "TurnInsert", c.turn, c.session, bulk.Workspace, "queued", 600, 50, nil, "rolling", []string{}, nil, nil, nil,
		[]string{}, nil, nil); err != nil {
		return err
	}
	for _, role := range []string{"user", "assistant"} {
		if err := c.run(ctx, tx, "MessageInsert", uuid.Must(uuid.NewV7()), c.session, c.turn, bulk.Workspace, role, nil, nil, nil, nil,
			"in_progress", 1, 1); err != nil {
			return err
		}
	}
	if err := c.run(ctx, tx, "SessionTurn", c.session, c.turn); err != nil {
		return err
	}
	return c.run(ctx, tx, "IdempotencyTake", bulk.Workspace, "sendMessage", c.turn.String(), []byte("hash"), c.turn)
}

func (c *conversation) claim(ctx context.Context, tx pgx.Tx) error {
	if err := c.write(ctx, tx, "started"); err != nil {
		return err
	}
	return c.run(ctx, tx, "TurnClaim", 1, 1, 60.0, c.turn, []string{"queued"})
}

func (c *conversation) text(ctx context.Context, tx pgx.Tx) error {
	return c.write(ctx, tx, "text", "text", "text")
}

func (c *conversation) end(ctx context.Context, tx pgx.Tx) error {
	if err := c.write(ctx, tx, "done"); err != nil {
		return err
	}
	if err := c.run(ctx, tx, "TurnClose", "completed", nil, true, c.turn, []string{"running"}); err != nil {
		return err
	}
	return c.run(ctx, tx, "MessageClose", nil, time.Now().Add(-time.Hour), "completed", nil, []byte("[]"), []byte("[]"), nil, nil, nil,
		c.ord, c.turn)
}

// filesUpTo returns the migrations of a release.
func filesUpTo(t *testing.T, last int) fstest.MapFS {
	t.Helper()
	names, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		version, err := strconv.Atoi(name[:5])
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if version <= last {
			files[name] = &fstest.MapFile{Data: text}
		}
	}
	return files
}

// readRelease returns the statements of the previous release by name.
func readRelease(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(releaseSQL)
	if err != nil {
		t.Fatal(err)
	}
	statements := make(map[string]string)
	named := regexp.MustCompile(`(?m)^-- name: (\w+) :\w+\n`)
	at := named.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		statements[string(text[m[2]:m[3]])] = strings.TrimSuffix(strings.TrimSpace(string(text[m[1]:end])), ";")
	}
	return statements
}
