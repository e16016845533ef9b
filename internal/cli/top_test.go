package cli_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestTopShowsTheWork reads the work of a server with a running, a waiting and a failed turn, from
// the database and from the server.
func TestTopShowsTheWork(t *testing.T) {
	t.Parallel()
	sh, srv, dsn := world(t)
	sh.must("secrets", "set", "TOKEN", "--host", "a.example.com", "--no-value")
	sh.run("send", "--quiet", "@error content_refused")
	if _, errs, code := sh.run("send", "--quiet", "--no-input", wants); code != 3 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	running := sh.start("send", "--quiet", "@wait 10m")
	defer func() { // the first Ctrl-C cancels the turn
		running.interrupts <- os.Interrupt
		wait.Receive(t, "the end of send", running.code)
	}()
	key := strings.TrimSpace(sh.must("keys", "create", "--name", "top", "--scope", "server:admin"))
	remote := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + srv.url, "PARLEY_WORKSPACE=test", "PARLEY_API_KEY=" + key}}
	database := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	pool := dbtest.Pool(t, dsn)
	wait.For(t, "one turn runs and one waits", func() bool { // the start of the one is on a clock that is ahead
		tag, err := pool.Exec(t.Context(), `UPDATE turns SET started_at = now() + interval '1 hour'
			WHERE state = 'running' AND started_at IS NOT NULL AND EXISTS (SELECT FROM turns WHERE state = 'waiting')`)
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected() == 1
	})
	if _, err := pool.Exec(t.Context(), `INSERT INTO river_job (state, kind, queue, args, max_attempts, attempt, attempted_at, attempted_by)
		VALUES ('running', 'gone', 'gone', '{}', 1, 1, now(), '{999999999}')`); err != nil {
		t.Fatal(err)
	}
	if tag, err := pool.Exec(t.Context(), `INSERT INTO river_job (state, kind, queue, args, max_attempts, attempt, attempted_at, attempted_by)
		SELECT 'running', 'turn', 'gone', jsonb_build_object('turn_id', id), 1, 1, now(), '{999999999}' FROM turns WHERE state = 'failed'`); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err) // another process has ended the turn of this lost job
	}
	for name, sh := range map[string]shell{"server": remote, "database": database} {
		var text string
		var a client.Activity
		wait.For(t, "the "+name+" shows the running turn", func() bool {
			text = sh.must("top", "--once", "--json")
			if err := json.Unmarshal([]byte(text), &struct{ Data *client.Activity }{&a}); err != nil {
				t.Fatal(err)
			}
			return len(a.Slow) == 1 && a.Turns.Running == 1 && a.Streams > 0 // each figure has its own statement
		})
		if a.Turns.Running != 1 || a.Turns.Waiting != 1 || a.Turns.Queued != 0 || a.Approvals.Pending != 1 || a.Replicas != 1 ||
			a.Listeners == 0 ||
			len(a.Workers) != 1 || a.Workers[0].Turns != 1 || a.Slow[0].Workspace != "test" || a.Slow[0].Seconds != 0 || len(a.Queues) == 0 ||
			!slices.Contains(a.Ended, client.EndedTurns{State: "failed", Error: "content_refused", Turns: 1}) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, part := range []string{"1 running, 0 queued (oldest 0s), 1 waiting", "1 pending", "1 replica, ", "1 lost       oldest",
		"1 failed content_refused", "SECONDS"} {
		if text := remote.must("top", "--once"); !strings.Contains(text, part) || strings.Contains(text, "\x1b") {
			t.Errorf("no %q in %q", part, text)
		}
	}
	if _, errs, code := sh.run("top", "--once"); code != 0 { // PARLEY_DATABASE_URL takes precedence over the key
		t.Errorf("exit code %d, %s", code, errs)
	}
	stranger := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + srv.url, "PARLEY_WORKSPACE=test",
		sh.environ[len(sh.environ)-1]}}
	if _, errs, code := stranger.run("top", "--once"); code != 4 {
		t.Errorf("a key without server:admin: exit code %d, %s", code, errs)
	}
}

// TestTopEndsWithoutAFirstReading checks that top does not wait for a server that it never reached,
// or for one that is not Parley.
func TestTopEndsWithoutAFirstReading(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + free.Addr().String()
	free.Close()
	for url, want := range map[string]string{closed: "No answer from " + closed, other.URL: "The response is not from Parley."} {
		live := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + url, "PARLEY_API_KEY=x"}}.start("top")
		if code := wait.Receive(t, "the end of top", live.code); code != 5 || !strings.Contains(live.errs.String(), want) {
			t.Errorf("exit code %d, %s; want %q", code, live.errs, want)
		}
	}
}

// TestTopOutlastsAnOutage loses the database behind a live view, which reports that once, goes on
// afterwards, and ends with Ctrl-C. Without a terminal it prints no control codes.
func TestTopOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	proxy, dsn := dbtest.Proxy(t, dbtest.DSN(t))
	live := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}.start("top")
	readings := func() int { return strings.Count(live.out.String(), " lined up") }
	wait.For(t, "two readings", func() bool { return readings() >= 2 })
	proxy.Refuse(true)
	proxy.Cut()
	wait.For(t, "some attempts", func() bool { return proxy.Refused() >= 5 })
	before := readings()
	proxy.Refuse(false)
	wait.For(t, "a reading", func() bool { return readings() > before })
	live.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the end of top", live.code); code != 0 {
		t.Errorf("exit code %d, %s", code, live.errs)
	}
	if n := strings.Count(live.errs.String(), "parley: "); n != 1 || strings.Contains(live.out.String(), "\x1b") ||
		!strings.Contains(live.errs.String(), "parley: PostgreSQL does not answer.\n") || strings.Contains(live.errs.String(), "request") {
		t.Errorf("%d problems:\n%s\n%q", n, live.errs, live.out)
	}
}
