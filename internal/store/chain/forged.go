package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
)

// readDrops reads what retention has dropped. The newest drop of each kind has left nothing older.
func (v *verifier) readDrops(ctx context.Context) error {
	drops, err := v.q.ChainDrops(ctx)
	if err != nil {
		return err
	}
	var newest [2]db.ChainDropsRow
	for _, row := range drops {
		var d drop
		if err := json.Unmarshal(row.Detail, &d); err != nil {
			return err
		}
		i := 0
		if d.Deltas {
			i = 1
		}
		if d.Before.After(v.dropped[i]) {
			v.dropped[i], newest[i] = d.Before, row
		}
	}
	for i, row := range newest {
		if v.dropped[i].IsZero() {
			continue
		}
		if err := v.verifyDrop(ctx, i == 1, v.dropped[i], row); err != nil {
			return err
		}
	}
	return nil
}

// verifyDrop reports a drop of partitions that the log contradicts.
func (v *verifier) verifyDrop(ctx context.Context, deltas bool, before time.Time, row db.ChainDropsRow) error {
	what := "events"
	if deltas {
		what = "text deltas"
	}
	text := fmt.Sprintf("Link %d records that retention has dropped all %s before %s", row.Number, what, before.UTC().Format(time.RFC3339))
	if row.Number == 0 {
		text = fmt.Sprintf("A notice records that retention has dropped all %s before %s", what, before.UTC().Format(time.RFC3339))
	}
	if before.After(row.At) {
		return v.report(Finding{Kind: Link, Link: row.Number, Text: text + ", a time after the drop. It was forged."})
	}
	old, err := v.q.ChainOlder(ctx, deltas, before)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return v.report(Finding{Kind: Link, Link: row.Number, Session: &old.SessionID, Seq: old.Seq,
		Text: fmt.Sprintf("%s, and event %d is older. It was forged.", text, old.Seq)})
}

// reportErasure reports an erasure that its session contradicts.
func (v *verifier) reportErasure(what string, link int64, session uuid.UUID) error {
	return v.report(Finding{Kind: Link, Link: link, Session: &session,
		Text: what + ", and the table erasures does not have it. It was forged, or the row was removed."})
}

// wasDropped reports whether retention has dropped the events of a time.
func (v *verifier) wasDropped(deltas bool, at time.Time) bool {
	if deltas {
		return at.Before(v.dropped[1])
	}
	return at.Before(v.dropped[0])
}
