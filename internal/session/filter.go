package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SummaryQuery narrows and orders the list of a workspace's sessions.
type SummaryQuery struct {
	CallerID      *string           // nil: all callers
	User          *string           // nil: all users
	Metadata      map[string]string // pairs that a session must have; nil: none
	Status        Status            // one of Statuses; "": all
	CreatedAfter  *time.Time        // nil: all
	CreatedBefore *time.Time        // nil: all
	Search        string            // words of the title or of a message; "": all
	OldestFirst   bool
	Limit         int    // at least 1
	Cursor        string // "": the first page
}

// Statuses are the filters by status: those of a session, and the states of its newest turn that
// they contain.
var Statuses = []string{string(NotStarted), string(Thinking), string(Done), string(Waiting), string(Failed), string(Canceled)}

// summaryColumns are the columns of a summaryRow, in its order.
const summaryColumns = `s.id, s.caller_id, s.title, s.turn_id, s.last_seq, s.message_count, s.input_tokens, s.output_tokens, s.cost_usd,
       s.created_at, s.updated_at, s.erased_at, s.end_user, s.metadata, t.state, t.error, a.id AS approval_id, a.kind AS approval_kind,
           a.expires_at,
       s.parent_id, s.parent_seq, CASE WHEN s.parent_id IS NOT NULL THEN (SELECT o.erased_at IS NOT NULL FROM sessions o
           WHERE o.id = s.parent_id) END`

// summaryTables are a session, its newest turn, and the question that this turn waits for.
const summaryTables = `sessions s LEFT JOIN turns t ON t.id = s.turn_id
LEFT JOIN approvals a ON a.turn_id = s.turn_id AND a.status = 'pending' AND a.expires_at > clock_timestamp()`

// clockSkew covers clocks that are set back and clocks of replicas that differ. It is also the time
// of the index sessions_long.
const clockSkew = time.Hour

// conditions are the conditions of a statement with their arguments.
type conditions struct {
	all  []string
	args []any
}

// addCondition adds a condition; each %s is the place of an argument.
func (c *conditions) addCondition(format string, args ...any) {
	c.all = append(c.all, c.addArguments(format, args...))
}

// addArguments adds arguments and returns the format with their places.
func (c *conditions) addArguments(format string, args ...any) string {
	places := make([]any, len(args))
	for i := range args {
		places[i] = fmt.Sprintf("$%d", len(c.args)+i+1)
	}
	c.args = append(c.args, args...)
	return fmt.Sprintf(format, places...)
}

// commonConditions returns the conditions that every session of the list fulfils. The statement
// contains only those of the query, so PostgreSQL chooses an index for them: it reads the newest
// sessions until a page is full if many match, else the matching ones.
func (q SummaryQuery) commonConditions(workspace uuid.UUID) *conditions {
	c := &conditions{}
	c.addCondition("s.workspace_id = %s", workspace)
	if q.CallerID != nil {
		c.addCondition("s.caller_id = %s::text", *q.CallerID)
	}
	if q.User != nil {
		c.addCondition("s.end_user = %s::text", *q.User)
	}
	if len(q.Metadata) > 0 {
		pairs, _ := json.Marshal(q.Metadata) // a map of texts cannot fail
		c.addCondition("s.metadata @> %s::jsonb", string(pairs))
	}
	if q.CreatedAfter != nil { // a session that was created late was not changed before
		c.addCondition("s.created_at > %s::timestamptz AND s.updated_at > %s::timestamptz", *q.CreatedAfter, q.CreatedAfter.Add(-clockSkew))
	}
	q.addStatus(c)
	return c
}

// unended are the states of a session's newest turn while it has not ended.
const unended = `('queued', 'running', 'waiting')`

func (q SummaryQuery) addStatus(c *conditions) {
	switch q.Status {
	case "":
	case NotStarted:
		c.addCondition("s.turn_id IS NULL")
	case Thinking: // few, and found by their turns
		c.addCondition("t.state IN " + unended +
			" AND s.id = ANY(ARRAY(SELECT o.session_id FROM turns o WHERE o.workspace_id = $1 AND o.state IN " + unended + "))")
	case Status(Waiting):
		c.addCondition(
			"t.state = 'waiting' AND s.id = ANY(ARRAY(SELECT o.session_id FROM turns o WHERE o.workspace_id = $1 AND o.state = 'waiting'))")
	case Done:
		c.addCondition("t.state NOT IN " + unended)
	default:
		c.addCondition("t.workspace_id = $1 AND t.state = %s::text", string(q.Status))
	}
}

// ageConditions returns lists of conditions of which a session must fulfil one, each list with an
// index of its own. It adds their arguments to c.
func (q SummaryQuery) ageConditions(c *conditions) [][]string {
	if q.CreatedBefore == nil {
		return [][]string{nil}
	}
	age := c.addArguments("s.created_at < %s::timestamptz", *q.CreatedBefore)
	return [][]string{ // an old session was changed last then or soon after, or was in use for long
		{age, c.addArguments("s.updated_at < %s::timestamptz", q.CreatedBefore.Add(clockSkew))},
		{age, "s.updated_at - s.created_at > interval '1 hour'"},
	}
}

// pages makes statements that read the first sessions of an order.
type pages struct {
	*conditions
	order string
}

// of returns the statement of the first n sessions that fulfil the common conditions and more.
func (p pages) of(n int, columns string, more ...string) string {
	return fmt.Sprintf("SELECT %s\nFROM %s\nWHERE %s\nORDER BY %s LIMIT %d",
		columns, summaryTables, strings.Join(append(slices.Clone(p.all), more...), "\n  AND "), p.order, n)
}

// SQL returns the statement of a page that begins after a position, with one row more than the
// page has.
func (q SummaryQuery) SQL(workspace uuid.UUID, at *time.Time, id uuid.UUID) (sql string, args []any) {
	c := q.commonConditions(workspace)
	order, after := "s.updated_at DESC, s.id DESC", "<"
	if q.OldestFirst {
		order, after = "s.updated_at, s.id", ">"
	}
	if at != nil {
		c.addCondition("(s.updated_at, s.id) "+after+" (%s::timestamptz, %s::uuid)", *at, id)
	}
	p := pages{c, order}
	ages := q.ageConditions(c)
	var with, parts []string // the first rows of the parts are those of all
	switch {
	case q.Search != "":
		with, parts = q.searchParts(p, ages)
	case len(ages) == 1:
		return p.of(q.Limit+1, summaryColumns), c.args
	default:
		for _, age := range ages {
			parts = append(parts, p.of(q.Limit+1, "s.id", age...))
		}
	}
	sql = p.of(q.Limit+1, summaryColumns, "s.id IN (("+strings.Join(parts, ")\nUNION (")+"))")
	if with != nil {
		sql = "WITH " + strings.Join(with, ",\n") + "\n" + sql
	}
	return sql, c.args
}
