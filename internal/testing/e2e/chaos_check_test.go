package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
)

// check compares the stored rows with the frames of the clients and the text of the model.
func (c *chaosRun) check() {
	c.mustBeEmpty()
	turns, rows := c.load()
	finished := 0
	for _, t := range turns {
		c.resumed += max(t.attempts()-1, 0)
	}
	for _, s := range c.sent {
		turn := c.accepted(s, turns)
		if turn == nil {
			continue
		}
		c.ended(s, turn)
		if turn.over() || turn.state == "failed" { // ended has reported a failure without a cause
			finished++
		}
		if err := saidBy(turn.rows, s.steps, turn.state == "completed"); err != nil {
			c.violation("%s, turn %s (%s): %v", s.tag, turn.id, turn.state, err)
		}
	}
	if finished*10 < len(c.sent)*8 {
		c.violation("only %d of %d turns finished: the run proves nothing", finished, len(c.sent))
	}
	for _, conn := range c.connections {
		if err := conn.agrees(rows[conn.session], turns[conn.tag]); err != nil {
			c.violation("stream of %s, session %s, cursor %q, replay=all %t: %v", conn.tag, conn.session, conn.cursor, conn.all, err)
		}
	}
	c.shop.checkOnce(c)
	for _, check := range c.checks {
		check()
	}
	c.readAgain(rows)
	c.searchLogs()
}

// invariants are queries for violations, with the meaning of a row.
var invariants = map[string]string{
	"ordinals have a gap in session": `SELECT session_id FROM (
		SELECT session_id, ord, lag(ord, 1, 0::bigint) OVER (PARTITION BY session_id ORDER BY seq) AS before FROM events) e WHERE ord <> before + 1`,
	"the head is not the newest event of session": `SELECT s.id FROM sessions s JOIN (SELECT session_id, max(seq) AS seq, max(ord) AS ord FROM events GROUP BY 1) e
		ON e.session_id = s.id WHERE e.seq <> s.last_seq OR e.ord <> s.last_ord`,
	"not one done, at the end, of turn": `SELECT t.id FROM turns t JOIN events e ON e.turn_id = t.id GROUP BY t.id
		HAVING count(*) FILTER (WHERE kind = 'done') <> 1 OR max(seq) FILTER (WHERE kind = 'done') <> max(seq)`,
	"not one open and one message of turn": `SELECT t.id FROM turns t LEFT JOIN events e ON e.turn_id = t.id GROUP BY t.id
		HAVING count(*) FILTER (WHERE kind = 'open') <> 1 OR count(*) FILTER (WHERE kind = 'message') <> 1`,
	"not over: turn": `SELECT id || ' ' || state FROM turns WHERE state NOT IN ('completed', 'failed', 'canceled')`,
	"not one start and one result: call": `SELECT turn_id || ' ' || (data->>'tool_use_id') FROM events WHERE kind IN ('tool_use', 'tool_result') GROUP BY turn_id, data->>'tool_use_id'
		HAVING count(*) FILTER (WHERE kind = 'tool_use') <> 1 OR count(*) FILTER (WHERE kind = 'tool_result') <> 1`,
	"the result comes before the start of call": `SELECT a.data->>'tool_use_id' FROM events a JOIN events b ON a.turn_id = b.turn_id AND a.data->>'tool_use_id' = b.data->>'tool_use_id'
		WHERE a.kind = 'tool_use' AND b.kind = 'tool_result' AND b.seq < a.seq`,
	"epochs go back in session": `SELECT session_id FROM (SELECT session_id, (data->>'epoch')::bigint AS epoch,
		lag((data->>'epoch')::bigint, 1, 0::bigint) OVER (PARTITION BY session_id ORDER BY seq) AS before FROM events WHERE kind = 'started') e WHERE epoch <= before`,
	"the stored answer is not the text of turn": `SELECT m.turn_id FROM messages m WHERE role = 'assistant' AND coalesce(content, '') <> coalesce(
		(SELECT string_agg(data->>'text', '' ORDER BY seq) FROM events e WHERE e.turn_id = m.turn_id AND e.kind = 'text'), '')`,
	"an open question of a turn that is over": `SELECT a.id FROM approvals a JOIN turns t ON t.id = a.turn_id WHERE a.status = ` +
		`'pending' AND t.state IN ('completed', 'failed', 'canceled')`,
	"decided more than once: question": `SELECT data->>'approval_id' FROM events WHERE kind = 'decision' GROUP BY 1 HAVING count(*) > 1`,
	"written more than once: page":     `SELECT path FROM documents WHERE path LIKE 'wiki/chaos-%' AND version <> 1`,
	"more than one session of caller":  `SELECT caller_id FROM sessions WHERE caller_id IS NOT NULL GROUP BY 1 HAVING count(*) > 1`,
}

func (c *chaosRun) mustBeEmpty() {
	for meaning, sql := range invariants {
		rows, err := c.w.pool.Query(c.t.Context(), `SELECT x::text FROM (`+sql+`) AS q (x) LIMIT 5`)
		if err != nil {
			c.t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			c.t.Fatalf("%s: %v", meaning, err)
		}
		for _, x := range found {
			c.violation("%s %s", meaning, x)
		}
	}
}

// storedRow is an event.
type storedRow struct {
	seq  int64
	turn string
	frame
}

// storedTurn is a turn with its rows.
type storedTurn struct {
	id, session, tag, state, code, content string
	rows                                   []storedRow
}

func (t *storedTurn) over() bool { return t.state == "completed" || t.state == "canceled" }

var tagLine = regexp.MustCompile(`Message (\S+)`)

// load reads the turns by tag and the rows by session.
func (c *chaosRun) load() (map[string]*storedTurn, map[string][]storedRow) {
	byID, byTag, rows := map[string]*storedTurn{}, map[string]*storedTurn{}, map[string][]storedRow{}
	found, err := c.w.pool.Query(c.t.Context(),
		`SELECT t.id::text, t.session_id::text, coalesce(u.content, ''), t.state, coalesce(t.error, ''), coalesce(a.content, '')
		FROM turns t LEFT JOIN messages u ON u.turn_id = t.id AND u.role = 'user' LEFT JOIN messages a ON a.turn_id = t.id AND a.role = 'assistant'`)
	if err != nil {
		c.t.Fatal(err)
	}
	var t storedTurn
	if _, err := pgx.ForEachRow(found, []any{&t.id, &t.session, &t.tag, &t.state, &t.code, &t.content}, func() error {
		stored := t
		if m := tagLine.FindStringSubmatch(t.tag); m != nil {
			stored.tag = m[1]
		}
		if other := byTag[stored.tag]; other != nil {
			c.violation("%s has two turns: %s and %s", stored.tag, other.id, stored.id)
		}
		byID[stored.id], byTag[stored.tag] = &stored, &stored
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	found, err = c.w.pool.Query(c.t.Context(), `SELECT seq, session_id::text, turn_id::text, kind, CASE WHEN kind = 'done' THEN '' ELSE `+
		`data::text END FROM events e ORDER BY e.seq`)
	if err != nil {
		c.t.Fatal(err)
	}
	var session string
	var r storedRow
	if _, err := pgx.ForEachRow(found, []any{&r.seq, &session, &r.turn, &r.Event, &r.Data}, func() error {
		r.ID = strconv.FormatInt(r.seq, 10)
		rows[session] = append(rows[session], r)
		if t := byID[r.turn]; t != nil { // else it began after the query above, in a run that is not over
			t.rows = append(t.rows, r)
		}
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	return byTag, rows
}

// accepted returns the turn of a message; that of an accepted one must exist.
func (c *chaosRun) accepted(s *sentMessage, turns map[string]*storedTurn) *storedTurn {
	turn := turns[s.tag]
	switch {
	case turn == nil && s.session != "":
		c.violation("%s was accepted in session %s and has no turn", s.tag, s.session)
	case turn != nil && s.session != "" && turn.session != s.session:
		c.violation("%s was accepted in session %s and is in %s", s.tag, s.session, turn.session)
	}
	return turn
}

// ended checks how a turn ended: no fault may fail it.
func (c *chaosRun) ended(s *sentMessage, turn *storedTurn) {
	interrupted := slices.ContainsFunc(c.sent, func(o *sentMessage) bool {
		return o.session == turn.session && o.body["multitask_strategy"] == "interrupt"
	})
	switch {
	case turn.state == "failed" && c.provider.excuses(s.tag, turn.code):
	case turn.state == "failed":
		c.violation("%s failed: %s", s.tag, turn.code)
	case s.canceled && turn.state != "canceled":
		c.violation("%s: its cancel call was answered with true, it is %s", s.tag, turn.state)
	case turn.state == "canceled" && s.cancelAfter == 0 && !interrupted:
		c.violation("%s was canceled without a request", s.tag)
	case s.blocking && s.finished && turn.state == "completed" && s.output != turn.content && s.output != s.steps[len(s.steps)-1]:
		c.violation("%s: the blocking call returned %d bytes, the stored answer has %d", s.tag, len(s.output), len(turn.content))
	}
	if s.page == "" || turn.state != "completed" {
		return
	}
	var content string
	err := c.w.pool.QueryRow(c.t.Context(), `SELECT content FROM documents WHERE path = $1`, "wiki/"+s.page+".md").Scan(&content)
	switch {
	case s.decision == "allow" && !turn.wrote(): // the model received a failed result
	case s.decision == "allow" && (err != nil || content != s.tag):
		c.violation("%s: the page that was allowed is %q: %v", s.tag, content, err)
	case s.decision != "allow" && !errors.Is(err, pgx.ErrNoRows):
		c.violation("%s: the page that was denied is there: %v", s.tag, err)
	}
}

// attempts counts how often a worker claimed the turn.
func (t *storedTurn) attempts() (n int) {
	for _, r := range t.rows {
		if r.Event == "started" {
			n++
		}
	}
	return n
}

// wrote reports whether the turn's call of wiki_write succeeded, by its result.
func (t *storedTurn) wrote() bool {
	return slices.ContainsFunc(t.rows, func(r storedRow) bool {
		return r.Event == "tool_result" && strings.Contains(r.Data, `"wiki_write","ok":true`)
	})
}

// saidBy compares a turn's text with the model's. The text of a step is the output of all attempts
// at it, one after the other: a resumed attempt continues where the stored text ends, so together
// they are exactly the step's text, and those of a canceled turn are its beginning. A blank line
// may separate a step from the one before.
func saidBy(rows []storedRow, steps []string, whole bool) error {
	said, step := "", 0
	for _, r := range rows {
		var body struct{ Text string }
		if r.Event != "text" && r.Event != "reply" {
			continue
		}
		if err := json.Unmarshal([]byte(r.Data), &body); err != nil {
			return err
		}
		if r.Event == "text" {
			said += body.Text
			continue
		}
		if step >= len(steps) {
			return fmt.Errorf("it has more than %d replies", len(steps))
		}
		for name, text := range map[string]string{"text": said, "reply": body.Text} {
			if text = afterBlank(text, step); text != steps[step] {
				return fmt.Errorf("the %s of step %d has %d bytes, the model wrote %d; they differ at byte %d", name, step+1, len(text),
					len(steps[step]), differ(text, steps[step]))
			}
		}
		said, step = "", step+1
	}
	said = afterBlank(said, step)
	switch {
	case whole && (step != len(steps) || said != ""):
		return fmt.Errorf("it completed after %d of %d steps and %d bytes", step, len(steps), len(said))
	case said != "" && (step >= len(steps) || !strings.HasPrefix(steps[step], said)):
		return fmt.Errorf("the %d bytes of step %d are not the beginning of the model's text", len(said), step+1)
	}
	return nil
}

func afterBlank(text string, step int) string {
	if step > 0 {
		return strings.TrimPrefix(text, "\n\n")
	}
	return text
}

// agrees checks the frames of one connection: they are the rows after its cursor, in order, without
// a hole, up to where it broke or to the end of the turn.
func (conn *connection) agrees(rows []storedRow, turn *storedTurn) error {
	if len(conn.frames) == 0 {
		return nil
	}
	if turn == nil {
		return errors.New("it has no turn")
	}
	cursor, _ := strconv.ParseInt(conn.cursor, 10, 64)
	var want []frame
	for _, r := range rows {
		public := event.Kind(r.Event).Public()
		mine := r.turn == turn.id && !conn.all || conn.all && r.Event != "open" && r.Event != "done"
		if public && mine && r.seq > cursor {
			want = append(want, r.frame)
		}
	}
	got := conn.frames
	if conn.cursor != "" { // the first frame is not a row
		if got[0].Event != "open" || got[0].ID != conn.cursor {
			return fmt.Errorf("it begins with %+v", got[0])
		}
		got = got[1:]
	}
	if conn.ended && conn.all { // nor is the last one
		last := got[len(got)-1]
		end, _ := strconv.ParseInt(last.ID, 10, 64)
		want = slices.DeleteFunc(want, func(f frame) bool { id, _ := strconv.ParseInt(f.ID, 10, 64); return id > end })
		want = append(want, last)
		if !slices.ContainsFunc(rows, func(r storedRow) bool { return r.seq == end && r.Event == "done" }) && last.ID != conn.cursor {
			return fmt.Errorf("the id %s of its done is not that of a done in the log", last.ID)
		}
	}
	if n := len(want); conn.ended && len(got) != n || len(got) > n {
		return fmt.Errorf("it has %d frames, the log %d rows: %s", len(got), n, firstDifference(got, want))
	}
	if !slices.Equal(got, want[:len(got)]) {
		return errors.New(firstDifference(got, want))
	}
	return nil
}

func firstDifference(got, want []frame) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("frame %d is %.200v, the row %.200v", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("they agree up to frame %d", min(len(got), len(want)))
}

// readAgain reads every session once more from both replicas: from its beginning on one, from its
// middle on the other.
func (c *chaosRun) readAgain(rows map[string][]storedRow) {
	for session, log := range rows {
		if log[len(log)-1].Event != "done" {
			continue // reported already
		}
		for i, r := range c.replicas {
			at := i * len(log) / 2
			if i > 0 && log[at].Event == "open" { // the cursor of a queued message's open event would select that turn
				at++
			}
			conn := &connection{session: session, cursor: log[at].ID, all: true}
			began := time.Now()
			err := c.readOnce(&r.server, conn)
			if took := time.Since(began); took > c.slowest {
				c.slowest = took
				c.logf("replica %d took %v to show session %s again: %v", i, took, session, err)
			}
			if err == nil {
				err = conn.agrees(log, &storedTurn{})
			}
			if err != nil {
				c.violation("session %s read again from replica %d after %s: %v", session, i, conn.cursor, err)
				return // the others would wait as long
			}
		}
	}
}

// readOnce reads a session to its end on one connection, as soon as the server accepts one.
func (c *chaosRun) readOnce(srv *server, conn *connection) (err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), *overWithin)
	defer cancel()
	for !conn.ended && ctx.Err() == nil {
		conn.frames = nil
		err = c.w.stream(ctx, c.w.events(srv, conn.session, conn.cursor), func(f frame) bool {
			conn.frames, conn.ended = append(conn.frames, f), f.Event == "done"
			return true
		})
		if err != nil { // as clients do before they reconnect
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return err
}

var alarming = regexp.MustCompile(`panic|DATA RACE|fatal error`)

// searchLogs finds forbidden text in the logs.
func (c *chaosRun) searchLogs() {
	for i := range c.replicas {
		log, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("replica-%d.log", i)))
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if alarming.MatchString(line) {
				c.violation("replica %d logged %.300s", i, line)
				break
			}
		}
	}
}

// unfinished lists the messages whose ends the clients have not received in time.
func (c *chaosRun) unfinished(limit time.Duration) {
	c.mu.Lock()
	var tags []string
	for _, s := range c.sent {
		if !s.finished {
			tags = append(tags, s.tag)
		}
	}
	c.mu.Unlock()
	var states []string
	rows, err := c.w.pool.Query(c.t.Context(),
		`SELECT t.id || ' ' || state || ' ' || substring(coalesce(content, '') from 'Message (\S+)') FROM turns t
		LEFT JOIN messages m ON m.turn_id = t.id AND role = 'user' WHERE state NOT IN ('completed', 'failed', 'canceled')`)
	if err == nil {
		states, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	c.violation("%v after the last fault clients still wait for %s; turns not over: %s (%v)", limit, strings.Join(tags, " "),
		strings.Join(states, ", "), err)
}

// dump writes the tables that explain a violation.
func (c *chaosRun) dump() {
	for _, table := range []string{"sessions", "turns", "events", "messages", "approvals", "river_job"} {
		f, err := os.Create(filepath.Join(c.dir, table+".csv"))
		if err != nil {
			c.t.Fatal(err)
		}
		defer f.Close()
		conn, err := c.w.pool.Acquire(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := conn.Conn().PgConn().CopyTo(c.t.Context(), f, "COPY (SELECT * FROM "+table+") TO STDOUT WITH CSV HEADER"); err != nil {
			c.t.Error(err)
		}
		conn.Release()
	}
}
