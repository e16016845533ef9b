package session

import "fmt"

// searchedFirst is the number of sessions whose messages are searched before the index of words is
// read. If the words are frequent, a page of matches is among them. If they are not, the index finds
// all of them at a low cost. PostgreSQL cannot choose between both, because it overestimates words
// that are rare or absent: it would search the messages of every session.
const searchedFirst = 2000

// searchParts returns statements whose first rows are those of all sessions with the words, and the
// tables that they share.
func (q SummaryQuery) searchParts(p pages, ages [][]string) (with, parts []string) {
	words := p.addArguments("@@ websearch_to_tsquery('simple'::regconfig, %s::text)", q.Search)
	content := "to_tsvector('simple'::regconfig, left(m.content, 50000)) " + words
	for i, age := range ages {
		found := fmt.Sprintf("found_%d", i)
		with = append(with, fmt.Sprintf(`%s AS MATERIALIZED (
SELECT s.id FROM (%s) s CROSS JOIN LATERAL (SELECT FROM messages m WHERE m.session_id = s.id AND %s LIMIT 1) m
ORDER BY %s LIMIT %d)`, found, p.of(searchedFirst, "s.id, s.updated_at", age...), content, p.order, q.Limit+1))
		byIndex := []string{
			fmt.Sprintf("(SELECT count(*) FROM %s) <= %d", found, q.Limit),
			fmt.Sprintf("EXISTS (%s OFFSET %d)", p.of(1, "1", age...), searchedFirst),
			"s.id = ANY(ARRAY(SELECT m.session_id FROM messages m WHERE m.workspace_id = $1 AND " + content + "))",
		}
		title := "s.titled AND to_tsvector('simple'::regconfig, s.title) " + words // a derived title is the beginning of a message
		parts = append(parts, "SELECT id FROM "+found, p.of(q.Limit+1, "s.id", append(byIndex, age...)...),
			p.of(q.Limit+1, "s.id", append([]string{title}, age...)...))
	}
	return with, parts
}
