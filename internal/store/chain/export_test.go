package chain

import (
	"context"
	"crypto/sha256"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
)

// RewriteLinks computes the digests and hashes of all links again, as a program without the key can.
// The signatures stay.
func RewriteLinks(ctx context.Context, tx pgx.Tx) error {
	q := db.New(tx)
	for after := int64(0); ; after++ {
		page, err := q.ChainPage(ctx, db.ChainPageParams{After: after, N: 1})
		if err != nil || len(page) == 0 {
			return err
		}
		r := page[0]
		l := &link{number: r.Number, kind: r.Kind, afterSeq: r.AfterSeq, afterOrd: r.AfterOrd, lastSeq: r.LastSeq, lastOrd: r.LastOrd,
			lastAt: r.LastAt, detail: string(r.Detail), upto: r.Upto, at: r.At, key: r.KeyID}
		if r.SessionID != nil {
			l.session = *r.SessionID
		}
		if l.digest = r.Digest; r.Entries != nil {
			w := newEntryWriter(r.Salt, r.AfterSeq, r.AfterOrd)
			rows := newWanted(1)
			rows.add(l.session, r.AfterSeq, r.LastSeq, beginning)
			if err := rows.read(ctx, tx, maxSeq, func(_ int, r *row) { w.addRow(r) }); err != nil {
				return err
			}
			l.entries = w.finish()
			sum := sha256.Sum256(l.entries)
			l.digest = sum[:]
		}
		if _, err := tx.Exec(ctx, `UPDATE chain_links SET entries = coalesce($2, entries), digest = $3, hash = $4 WHERE number = $1`,
			l.number, l.entries, l.digest, l.computeHash(r.Previous, r.Before)); err != nil {
			return err
		}
	}
}
