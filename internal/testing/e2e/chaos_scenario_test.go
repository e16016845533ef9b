//go:build faultpoints

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// count runs a query that returns one number.
func (c *chaosRun) count(sql string, args ...any) (n int) {
	c.t.Helper()
	if err := c.w.pool.QueryRow(c.t.Context(), sql, args...).Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// expiry lets approvals expire.
var expiry = scenario{
	draw: func(_ *chaosRun, rng *rand.Rand, tag string) *chaosMessage {
		m := newChaosMessageOf(rng, tag, messageApproval)
		m.decision = unanswered
		return m
	},
	settle: func(c *chaosRun) {
		if n := c.count(`SELECT count(*) FROM approvals WHERE status = 'expired'`); n == 0 {
			c.violation("no approval expired")
		}
		n := c.count(`SELECT count(*) FROM approvals a JOIN turns t ON t.id = a.turn_id
			WHERE t.state = 'completed' AND (a.status <> 'expired' OR a.decided_at < a.expires_at)`)
		if n > 0 {
			c.violation("%d approvals without an answer are not expired, or expired early", n)
		}
	},
}

// secrets lets turns request a secret and send it to the shop.
var secrets = scenario{
	prepare: func(c *chaosRun) {
		c.w.parley(c.t, "secrets", "set", "SHOP_KEY", "--workspace", "w", "--host", strings.TrimPrefix(c.shop.url, "http://"),
			"--allow-http", "--no-value")
		c.addTool("pay", `headers: {Authorization: "Bearer ${SHOP_KEY}"}`)
		c.secretKey = c.w.parley(c.t, "keys", "create", "--workspace", "w", "--name", "provider", "--scope", "chat", "--scope", "secret")
	},
	draw: func(_ *chaosRun, rng *rand.Rand, tag string) *chaosMessage {
		return newChaosMessageOf(rng, tag, messageSecret)
	},
	settle: func(c *chaosRun) {
		provided := c.count(`SELECT count(*) FROM events WHERE kind = 'decision' AND data->>'outcome' = 'provided'`)
		if version := c.count(`SELECT version FROM credentials WHERE name = 'SHOP_KEY'`); provided == 0 || version != 1+provided {
			c.violation("after %d answers with a value the secret has version %d", provided, version)
		}
		if n := c.count(`SELECT count(*) FROM events WHERE data::text LIKE $1`, "%"+shopSecret+"%"); n > 0 {
			c.violation("%d events contain the secret", n)
		}
		for i := range c.replicas {
			if log, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("replica-%d.log", i))); err != nil || strings.Contains(string(log),
				shopSecret) {
				c.violation("the log of replica %d contains the secret: %v", i, err)
			}
		}
		c.shop.mu.Lock()
		defer c.shop.mu.Unlock()
		if c.shop.paid == 0 || c.shop.unpaid > 0 {
			c.violation("%d requests had the secret, %d did not", c.shop.paid, c.shop.unpaid)
		}
	},
}

// callbacks lets turns report to a receiver.
var callbacks = scenario{
	draw: func(c *chaosRun, rng *rand.Rand, tag string) *chaosMessage {
		m := newChaosMessage(rng, tag)
		if m.blocking = false; m.bad == nil { // the receiver may not wait for a provider
			m.body["callback"], m.body["stream"] = c.shop.url+"/hook", true
		}
		return m
	},
	settle: func(c *chaosRun) {
		// An attempt counts as lost after a minute: move its time forward.
		if _, err := c.w.pool.Exec(c.t.Context(),
			`UPDATE callback_deliveries SET next_at = now() - interval '10 seconds' WHERE status = 'pending'`); err != nil {
			c.t.Fatal(err)
		}
		wait.For(c.t, "no report is pending", func() bool {
			return c.count(`SELECT count(*) FROM callback_deliveries WHERE status = 'pending'`) == 0
		})
		if n := c.count(`SELECT count(*) FROM callbacks c WHERE NOT EXISTS (SELECT FROM callback_deliveries d
			WHERE d.callback_id = c.id AND d.type <> 'turn.input_required' AND d.status = 'delivered')`); n > 0 {
			c.violation("%d turns have reported no end", n)
		}
		c.shop.mu.Lock()
		defer c.shop.mu.Unlock()
		repeated := 0
		for id, bodies := range c.shop.reports {
			for _, body := range bodies[1:] {
				if repeated++; body != bodies[0] {
					c.violation("report %s was sent with two bodies", id)
				}
			}
		}
		if n := c.count(`SELECT count(*) FROM callback_deliveries`); n != len(c.shop.reports) || repeated == 0 {
			c.violation("%d reports are stored, the receiver has %d and %d repetitions", n, len(c.shop.reports), repeated)
		}
	},
}

// The sessions of the past. The turns of one ended long ago; those of the other can be replayed until
// a reader has done so.
var (
	longAgo = uuid.MustParse("00000000-0000-7000-8000-000000000001")
	lately  = uuid.MustParse("00000000-0000-7000-8000-000000000002")
)

// wholePast and gonePast count in a run how often sessions of the past were read whole, or were gone.
var wholePast, gonePast atomic.Int64

// retention lets readers replay sessions whose partitions are dropped.
var retention = scenario{
	prepare: func(c *chaosRun) {
		wholePast.Store(0)
		gonePast.Store(0)
		c.makeDays(5, 20)
		c.makePast(longAgo, 9, 19, "25 hours")
		c.makePast(lately, 6, 8, "0")
	},
	beside: func(ctx context.Context, c *chaosRun) { c.readPast(ctx) },
	settle: func(c *chaosRun) {
		if whole, gone := wholePast.Load(), gonePast.Load(); whole == 0 || gone == 0 {
			c.violation("sessions of the past were read %d times whole and %d times as gone", whole, gone)
		}
		old := `SELECT count(*) FROM events_partition_ends() WHERE delta AND ends <= date_trunc('day', now(), 'UTC') - interval '1 day'`
		started := time.Now()
		wait.For(c.t, "the partitions past their time are dropped", func() bool {
			left := c.count(old) > 0
			if left && time.Since(started) > 5*time.Second { // traffic had the lock; a start tries again
				started = time.Now()
				c.replicas[0].send(syscall.SIGTERM)
			}
			return !left
		})
		for _, sql := range []string{"DELETE FROM events WHERE session_id = ANY($1)", "DELETE FROM turns WHERE session_id = ANY($1)",
			"DELETE FROM sessions WHERE id = ANY($1)"} {
			dbtest.Tamper(c.t, c.w.pool, sql, []uuid.UUID{longAgo, lately})
		}
	},
}

// makeDays creates the partitions of text deltas of some days of the past.
func (c *chaosRun) makeDays(from, to int) {
	c.t.Helper()
	for n := to; n >= from; n-- {
		dbtest.Tamper(c.t, c.w.pool, fmt.Sprintf(`DO $$
			DECLARE day timestamptz := date_trunc('day', now(), 'UTC') - interval '%d days';
			BEGIN
				EXECUTE format('CREATE TABLE %%I PARTITION OF events_delta FOR VALUES FROM (%%L) TO (%%L)',
					'events_delta_' || to_char(day AT TIME ZONE 'UTC', 'YYYYMMDD'), day, day + interval '1 day');
			END $$`, n))
	}
}

// makePast creates a session with a turn for each of some days, across midnight, that ended some time
// ago.
func (c *chaosRun) makePast(session uuid.UUID, from, to int, ended string) {
	c.t.Helper()
	dbtest.Tamper(c.t, c.w.pool, `INSERT INTO sessions (id, workspace_id, created_at, updated_at) SELECT $1, id, now() - interval '300 `+
		`days', now() FROM workspaces WHERE slug = 'w'`, session)
	ord := 0
	for day := to; day >= from; day-- {
		turn := uuid.Must(uuid.NewV7())
		dbtest.Tamper(c.t, c.w.pool,
			`INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, created_at, finished_at)
			SELECT $1, $2, id, 'completed', 1, 1, date_trunc('day', now(), 'UTC') - make_interval(days => $3::int, mins => 10), now() - $4::text::interval FROM workspaces WHERE slug = 'w'`,
			turn, session, day-1, ended)
		dbtest.Tamper(c.t, c.w.pool, `INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
			SELECT $1, $2, date_trunc('day', now(), 'UTC') - make_interval(days => $3::int) + (i - 10) * interval '1 minute', i < 20, $4::int + i,
				CASE WHEN i < 20 THEN 'text' ELSE 'done' END, CASE WHEN i < 20 THEN format('{"v":1,"text":"%s "}', i) ELSE '{"v":1}' END::json
			FROM generate_series(1, 20) i ORDER BY i`, session, turn, day-1, ord)
		dbtest.Tamper(c.t, c.w.pool, `UPDATE turns SET start_seq = e.low, end_seq = e.high
			FROM (SELECT min(seq) AS low, max(seq) AS high FROM events WHERE turn_id = $1) e WHERE id = $1`, turn)
		ord += 20
	}
	dbtest.Tamper(c.t, c.w.pool, `UPDATE sessions SET last_seq = e.seq, last_ord = e.ord, turn_id = e.turn_id
		FROM (SELECT seq, ord, turn_id FROM events WHERE session_id = $1 ORDER BY seq DESC LIMIT 1) e WHERE id = $1`, session)
}

// readPast replays the sessions of the past again and again, on both replicas: each replay has every
// row, or ends with session_gone after the rows before a hole.
func (c *chaosRun) readPast(ctx context.Context) {
	want := map[uuid.UUID][]frame{}
	for _, session := range []uuid.UUID{longAgo, lately} {
		want[session] = c.w.table(c.t, session.String())
	}
	expires := false
	for i := 0; ctx.Err() == nil; i++ {
		if !expires && wholePast.Load() > 0 {
			expires = true
			dbtest.Tamper(c.t, c.w.pool,
				`UPDATE turns SET finished_at = now() - interval '23 hours 59 minutes 59 seconds' WHERE session_id = $1`, lately)
		}
		for session, rows := range want {
			var got []frame
			ended := false
			_ = c.w.stream(ctx, c.w.events(&c.replicas[i%2].server, session.String(), rows[0].ID), func(f frame) bool {
				got, ended = append(got, f), f.Event == "done"
				return true
			})
			c.judgePast(session, got, rows[1:], ended)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// judgePast checks the frames of one replay. Its done is not a row, and those of the other turns are
// not part of it.
func (c *chaosRun) judgePast(session uuid.UUID, got, rows []frame, ended bool) {
	if len(got) == 0 || got[0].Event != string(event.KindOpen) {
		return // no replica was there
	}
	var texts []frame
	gone := false
	for _, f := range got[1:] {
		switch {
		case f.Event == "text":
			texts = append(texts, f)
		case f.Event == "error" && strings.Contains(f.Data, "session_gone"):
			gone = true
		case f.Event != "done":
			c.violation("a replay of %s has the frame %+v", session, f)
		}
	}
	var want []frame
	for _, f := range rows {
		if f.Event == "text" {
			want = append(want, f)
		}
	}
	if len(texts) > len(want) || firstUnequal(texts, want) >= 0 || ended && !gone && len(texts) != len(want) {
		c.violation("a replay of %s has a hole: %d of %d rows, gone=%t: %s", session, len(texts), len(want), gone, firstDifference(texts, want))
		return
	}
	switch {
	case gone:
		gonePast.Add(1)
	case ended:
		wholePast.Add(1)
	}
}

// firstUnequal returns the first place at which two lists differ, or -1 if one begins with the other.
func firstUnequal(a, b []frame) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
