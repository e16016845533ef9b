package chain

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// maxUncovered is how many sessions with uncovered events are reported.
const maxUncovered = 20

// uncovered finds the newest events of sessions that the chain should cover and does not. Turns that
// have not ended, or ended after the newest link, are left out.
const uncovered = `
WITH tops AS (
    SELECT e.session_id, max(e.seq) AS seq FROM events e
    WHERE e.at < $1 AND ($2::uuid IS NULL OR e.session_id = $2)
      AND ($3::uuid IS NULL OR e.session_id IN (SELECT id FROM sessions WHERE workspace_id = $3))
    GROUP BY e.session_id
)
SELECT e.session_id, e.seq, e.ord, e.kind
FROM tops t
LEFT JOIN LATERAL (SELECT c.last_seq FROM chain_links c WHERE c.session_id = t.session_id ORDER BY c.number DESC LIMIT 1) l ON true
CROSS JOIN LATERAL (
    SELECT * FROM events n WHERE n.session_id = t.session_id AND n.seq > coalesce(l.last_seq, 0) AND n.at < $1
      AND NOT EXISTS (SELECT FROM turns o
          WHERE o.id = n.turn_id AND o.session_id = n.session_id AND (o.finished_at IS NULL OR o.finished_at >= $1))
    ORDER BY n.seq LIMIT 1
) e
WHERE t.seq > coalesce(l.last_seq, 0) AND NOT EXISTS (SELECT FROM chain_notices p WHERE p.session_id = t.session_id)
ORDER BY e.seq LIMIT $4`

// findUncovered reports events after the last link of their session.
func (v *verifier) findUncovered(ctx context.Context) error {
	if v.Since != nil {
		return nil
	}
	rows, err := v.tx.Query(ctx, uncovered, v.sum.Upto, v.Session, v.Workspace, maxUncovered)
	if err != nil {
		return err
	}
	var found []Finding
	var session uuid.UUID
	var seq, ord int64
	var kind string
	_, err = pgx.ForEachRow(rows, []any{&session, &seq, &ord, &kind}, func() error {
		id := session
		found = append(found, Finding{Kind: Uncovered, Session: &id, Seq: seq, Ord: ord, Text: fmt.Sprintf(
			"Event %d (%s) of session %s has no link, and the chain covers all turns that ended before %s. It was inserted, or its link "+
				"was removed.",
			seq, kind, session, v.sum.Upto.Format(time.RFC3339))})
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := v.report(f); err != nil {
			return err
		}
	}
	return nil
}
