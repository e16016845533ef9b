package bulk_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest/bulk"
)

// query is a query of a list, with one choice of its filters.
type query struct {
	name  string
	run   func(context.Context, db.DBTX) error
	most  float64   // rows that one node may look at; 0: rowsRead
	fresh bool      // the service has it planned for its arguments
	since time.Time // partitions that end earlier are not read; zero: any may be
}

// page is the size of the pages: the API's largest, and one row to find out whether another page
// follows.
const page = 101

// known are the arguments of the queries.
type known struct {
	session uuid.UUID // the newest one with events
	long    uuid.UUID // the session with the longest conversation
	turn    uuid.UUID // the turn of session
	caller  string    // the caller of session
	middle  time.Time // half of the sessions are older
	age     time.Time // the start of session
	early   time.Time // few sessions are older
	seq     int64     // the newest seq of session
	key     string
}

func findKnown(t testing.TB, conn *pgx.Conn) (k known) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT s.id, s.turn_id, s.caller_id, s.created_at, s.last_seq, t.key_id
		FROM sessions s JOIN turns t ON t.id = s.turn_id
		WHERE s.workspace_id = $1 AND t.state = 'completed' AND s.caller_id IS NOT NULL ORDER BY s.created_at DESC LIMIT 1`, bulk.Workspace).
		Scan(&k.session, &k.turn, &k.caller, &k.age, &k.seq, &k.key)
	if err == nil {
		err = conn.QueryRow(t.Context(), `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY updated_at), percentile_disc(0.001) WITHIN `+
			`GROUP (ORDER BY created_at), min(id::text)::uuid FROM sessions WHERE workspace_id = $1`,
			bulk.Workspace).Scan(&k.middle, &k.early, &k.long)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func one[T any](_ T, err error) error { return err }

// queries are the lists of the API, of A2A and of the command line.
func queries(k known) []query {
	var all []query
	add := func(name string, run func(ctx context.Context, q *db.Queries) error) *query {
		all = append(all, query{name: name, run: func(ctx context.Context, on db.DBTX) error { return run(ctx, db.New(on)) }})
		return &all[len(all)-1]
	}
	var zero uuid.UUID
	w, recent, hour := bulk.Workspace, new(k.age.Add(-time.Minute)), new(time.Now().Add(-time.Hour))
	for _, status := range append([]string{""}, session.Statuses...) {
		for name, p := range map[string]struct {
			session.SummaryQuery
			at *time.Time
		}{
			"":                   {},
			" caller":            {SummaryQuery: session.SummaryQuery{CallerID: &k.caller}},
			" created":           {SummaryQuery: session.SummaryQuery{CreatedAfter: recent}},
			" created, cursor":   {SummaryQuery: session.SummaryQuery{CreatedAfter: &k.middle}, at: hour},
			" cursor":            {at: &k.middle},
			" before":            {SummaryQuery: session.SummaryQuery{CreatedBefore: &k.middle}},
			" long before":       {SummaryQuery: session.SummaryQuery{CreatedBefore: &k.early}},
			" user":              {SummaryQuery: session.SummaryQuery{User: new("user-7")}},
			" busy user":         {SummaryQuery: session.SummaryQuery{User: new("user-0")}},
			" metadata":          {SummaryQuery: session.SummaryQuery{Metadata: map[string]string{"order": "777"}}},
			" frequent metadata": {SummaryQuery: session.SummaryQuery{Metadata: map[string]string{"plan": "gold"}}},
			" word":              {SummaryQuery: session.SummaryQuery{Search: "page 7777"}},
			" absent word":       {SummaryQuery: session.SummaryQuery{Search: "absent", Limit: 10}},
			" frequent word":     {SummaryQuery: session.SummaryQuery{Search: "handbook"}},
			" title":             {SummaryQuery: session.SummaryQuery{Search: "renamed"}},
			" word, before":      {SummaryQuery: session.SummaryQuery{Search: "7777", CreatedBefore: &k.middle}},
		} {
			p.Status, p.Limit = session.Status(status), cmp.Or(p.Limit, page-1)
			for _, p.OldestFirst = range []bool{false, true} {
				sql, args := p.SQL(w, p.at, zero)
				order := ""
				if p.OldestFirst {
					order = "asc "
				}
				most := 0.0
				switch {
				case status == "failed", status == "canceled", status == "completed" && name == " word, before":
					most = 2 * sessions // a few in a hundred match: of so few sessions PostgreSQL reads all
				case name == " long before":
					most = sessions / 10 // those that were in use for more than an hour
				case strings.Contains(name, "word") || name == " title":
					most = sessions / 4 // the first 2000 sessions, with two messages each
				case name == " frequent metadata":
					most = 10 * page // one in six matches: the newest are found soon
				}
				all = append(all, query{most: most, name: "sessions " + order + status + name, run: func(ctx context.Context, on db.DBTX) error {
					return one(on.Query(ctx, sql, args...))
				}})
			}
		}
	}
	for _, id := range []uuid.UUID{k.session, k.long} {
		add("session head", func(ctx context.Context, q *db.Queries) error { return one(q.SessionHead(ctx, w, id, 86400)) })
		add("messages", func(ctx context.Context, q *db.Queries) error {
			return one(q.MessagesPage(ctx, id, 0, math.MaxInt64, page))
		})
		add("messages desc", func(ctx context.Context, q *db.Queries) error {
			return one(q.MessagesPageDesc(ctx, id, math.MaxInt64, page))
		})
		add("session egress", func(ctx context.Context, q *db.Queries) error { return one(q.EgressRequests(ctx, w, &id, page)) })
		add("session approvals", func(ctx context.Context, q *db.Queries) error {
			return one(q.ApprovalsPage(ctx, db.ApprovalsPageParams{WorkspaceID: w, SessionID: &id, N: page}))
		})
		add("session files", func(ctx context.Context, q *db.Queries) error {
			return one(q.FilesProduced(ctx, db.FilesProducedParams{WorkspaceID: w, SessionID: id, N: page}))
		})
		add("session folder", func(ctx context.Context, q *db.Queries) error { return one(q.WorkFiles(ctx, w, id, nil)) })
		add("session turns", func(ctx context.Context, q *db.Queries) error {
			return one(q.TurnViews(ctx, db.TurnViewsParams{WorkspaceID: w, SessionID: &id, N: page}))
		})
		add("session turns count", func(ctx context.Context, q *db.Queries) error {
			return one(q.TurnViewsCount(ctx, db.TurnViewsCountParams{WorkspaceID: w, SessionID: &id, Most: counted}))
		})
	}
	for _, status := range []string{"", "pending", "allowed", "denied", "provided", "skipped", "expired", "canceled"} {
		add("approvals "+status, func(ctx context.Context, q *db.Queries) error {
			return one(q.ApprovalsPage(ctx, db.ApprovalsPageParams{WorkspaceID: w, Status: nullable(status), N: page}))
		})
		add("approvals cursor "+status, func(ctx context.Context, q *db.Queries) error {
			return one(q.ApprovalsPage(ctx, db.ApprovalsPageParams{WorkspaceID: w, Status: nullable(status), BeforeAt: &k.middle,
				BeforeID: zero, N: page}))
		})
	}
	for _, status := range []string{"", "pending", "delivered", "failed"} {
		add("callbacks "+status, func(ctx context.Context, q *db.Queries) error {
			return one(q.DeliveriesPage(ctx, w, nullable(status), nil, page))
		})
		add("callbacks cursor "+status, func(ctx context.Context, q *db.Queries) error {
			return one(q.DeliveriesPage(ctx, w, nullable(status), &k.session, page))
		})
	}
	for _, direction := range []string{"", "in", "out"} {
		add("files "+direction, func(ctx context.Context, q *db.Queries) error {
			return one(q.FilesPage(ctx, w, uuid.Max, nullable(direction), page))
		})
	}
	begun, waits := true, false
	for name, p := range map[string]db.TurnViewsParams{
		"": {}, "submitted": {States: []string{"lined_up", "queued"}, Begun: &waits}, "working": {States: []string{"queued", "running"},
			Begun: &begun},
		"input-required": {States: []string{"waiting"}}, "completed": {States: []string{"completed"}}, "failed": {States: []string{"failed"}},
		"canceled": {States: []string{"canceled"}}, "since": {Since: recent}, "cursor": {BeforeAt: &k.middle, BeforeID: zero},
		"canceled cursor": {States: []string{"canceled"}, BeforeAt: &k.middle, BeforeID: zero},
	} {
		p.WorkspaceID, p.N = w, page
		if len(p.States) == 1 {
			p.State = &p.States[0]
		}
		turns := add("turns "+name, func(ctx context.Context, q *db.Queries) error { return one(q.TurnViews(ctx, p)) })
		if name == "failed" {
			turns.most = 40 * page // one turn of 33 matches: the newest are found soon
		}
		add("turns count "+name, func(ctx context.Context, q *db.Queries) error {
			return one(q.TurnViewsCount(ctx, db.TurnViewsCountParams{WorkspaceID: w, States: p.States, Begun: p.Begun, Since: p.Since,
				Most: counted}))
		}).most = counted * 3 / 2 // other workspaces' rows are among them
	}
	add("egress", func(ctx context.Context, q *db.Queries) error { return one(q.EgressRequests(ctx, w, nil, page)) })
	add("keys", func(ctx context.Context, q *db.Queries) error { return one(q.APIKeysList(ctx, w)) })
	add("wiki", func(ctx context.Context, q *db.Queries) error { return one(q.DocumentsList(ctx, w, "wiki/", "", nil)) })
	add("skills", func(ctx context.Context, q *db.Queries) error { return one(q.SkillsList(ctx, w)) })
	add("allow-list", func(ctx context.Context, q *db.Queries) error { return one(q.AllowlistList(ctx, w)) })
	add("workspaces", func(ctx context.Context, q *db.Queries) error { return one(q.WorkspacesList(ctx)) })

	since := k.age.Add(-time.Hour)
	log := func(name string, run func(ctx context.Context, q *db.Queries) error) { add(name, run).since = since }
	log("log", func(ctx context.Context, q *db.Queries) error {
		return one(q.EventsAfter(ctx, k.session, 0, since, page))
	})
	log("log of a turn", func(ctx context.Context, q *db.Queries) error {
		return one(q.TurnEvents(ctx, k.session, k.turn, since))
	})
	log("text of a turn", func(ctx context.Context, q *db.Queries) error {
		return one(q.TurnTail(ctx, k.session, k.turn, since, 0))
	})
	log("turn of an event", func(ctx context.Context, q *db.Queries) error { return one(q.EventTurn(ctx, k.session, k.seq, since)) })
	log("news", func(ctx context.Context, q *db.Queries) error {
		return one(q.EventsWoken(ctx, []uuid.UUID{k.session}, []int64{0}, since, page))
	})
	add("retention, sessions", func(ctx context.Context, q *db.Queries) error { return one(q.SessionsPast(ctx, 400*86400, 100)) })
	add("retention, count", func(ctx context.Context, q *db.Queries) error { return one(q.SessionsPastCount(ctx, 400*86400)) })
	add("retention, log", func(ctx context.Context, q *db.Queries) error { return one(q.RetentionBefore(ctx, 86400, 400*86400)) })
	// No turn of these rows has a link, so the chain begins a minute before now.
	add("chain, turns", func(ctx context.Context, q *db.Queries) error {
		return one(q.ChainDueTurns(ctx, time.Now().Add(-time.Minute), 256))
	})
	for i := range all {
		all[i].fresh = slices.Contains([]string{"sessions", "approvals", "callbacks", "files", "turns", "egress"},
			strings.Fields(all[i].name)[0]) ||
			slices.Contains([]string{"session egress", "session approvals", "session turns", "session turns count"}, all[i].name)
	}
	slices.SortFunc(all, func(a, b query) int { return strings.Compare(a.name, b.name) })
	return all
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
