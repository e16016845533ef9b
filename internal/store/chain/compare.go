package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/parley-server/parley/db"
)

// place is an event of the log, reduced to its place and its digest.
type place struct {
	seq, ord int64
	at       time.Time
	delta    bool
	kind     string
	digest   digest
}

// comparison compares the events of one link with its entries.
type comparison struct {
	v       *verifier
	ctx     context.Context
	link    db.ChainPageRow
	entries []entry
	rows    []place         // not compared yet
	present map[digest]bool // the digests of all rows
}

func (v *verifier) compareLink(ctx context.Context, l db.ChainPageRow, rows []place) error {
	entries, err := decodeEntries(l.Entries, l.AfterSeq, l.AfterOrd)
	if err != nil {
		return nil // the digest of the entries differs too, which was reported
	}
	c, before := &comparison{v: v, ctx: ctx, link: l, entries: entries, rows: rows}, v.sum.Findings
	c.present = make(map[digest]bool, len(rows))
	for _, r := range rows {
		c.present[r.digest] = true
	}
	for _, e := range entries {
		if e.deltas > 0 {
			err = c.compareRun(e)
		} else {
			err = c.compareRecord(e)
		}
		if err != nil {
			return err
		}
	}
	if err := c.reportInserted(maxSeq); err != nil || v.sum.Findings > before {
		return err
	}
	return c.checkNumbers(rows)
}

// checkNumbers reports events whose numbers in their session do not rise: one of two was inserted
// before the link was made, which has a digest of it, too.
func (c *comparison) checkNumbers(rows []place) error {
	last, seq := c.link.AfterOrd, c.link.AfterSeq
	for _, r := range rows {
		if r.ord <= last {
			return c.report(Inserted, r.seq, r.ord, "Event %d (%s) has number %d of its session, and event %d before it has number %d. "+
				"One of them was inserted before their link was made.", r.seq, r.kind, r.ord, seq, last)
		}
		last, seq = r.ord, r.seq
	}
	return nil
}

func (c *comparison) report(kind string, seq, ord int64, format string, args ...any) error {
	id := *c.link.SessionID
	return c.v.report(Finding{Kind: kind, Link: c.link.Number, Session: &id, Seq: seq, Ord: ord,
		Text: fmt.Sprintf(format, args...) + fmt.Sprintf(" Session %s, link %d of %s.", id, c.link.Number, c.link.At.UTC().Format(time.RFC3339))})
}

// reportInserted reports the rows before a seq.
func (c *comparison) reportInserted(before int64) error {
	for len(c.rows) > 0 && c.rows[0].seq < before {
		r := c.rows[0]
		c.rows = c.rows[1:]
		if moved, err := c.reportMoved(r); err != nil || moved {
			if err != nil {
				return err
			}
			continue
		}
		if err := c.report(Inserted, r.seq, r.ord, "Event %d (%s) was inserted.", r.seq, r.kind); err != nil {
			return err
		}
	}
	return nil
}

// compareRecord compares an event that is not a text delta.
func (c *comparison) compareRecord(e entry) error {
	if err := c.reportInserted(e.seq); err != nil {
		return err
	}
	if len(c.rows) == 0 || c.rows[0].seq != e.seq {
		if c.v.wasDropped(false, e.at) {
			c.v.sum.Dropped++
			return nil
		}
		return c.report(Removed, e.seq, e.ord, "Event %d was removed. It was number %d of its session, of %s.", e.seq, e.ord,
			e.at.Format(time.RFC3339Nano))
	}
	r := c.rows[0]
	c.rows = c.rows[1:]
	if r.digest == e.digest {
		return nil
	}
	if moved, err := c.reportMoved(r); err != nil || moved {
		return err
	}
	if !r.at.Equal(e.at) {
		return c.report(Changed, r.seq, r.ord, "Event %d (%s) was changed: its time is %s and was %s.", r.seq, r.kind,
			r.at.UTC().Format(time.RFC3339Nano), e.at.Format(time.RFC3339Nano))
	}
	return c.report(Changed, r.seq, r.ord, "Event %d (%s) was changed.", r.seq, r.kind)
}

// compareRun compares a run of text deltas.
func (c *comparison) compareRun(e entry) error {
	var run []place
	sum := sha256.New()
	for len(c.rows) > 0 && c.rows[0].delta && c.rows[0].seq <= e.seq {
		sum.Write(c.rows[0].digest[:])
		run, c.rows = append(run, c.rows[0]), c.rows[1:]
	}
	if len(run) == e.deltas && digest(sum.Sum(nil)) == e.digest {
		return nil
	}
	missing := e.deltas - len(run)
	if missing > 0 && c.v.wasDropped(true, e.at) && (len(run) == 0 || !c.v.wasDropped(true, run[0].at)) && c.matchHints(run,
		e.hints[missing*hintSize:]) {
		c.v.sum.Dropped += int64(missing)
		return nil
	}
	return c.reportRun(e, run)
}

func (c *comparison) matchHints(run []place, hints []byte) bool {
	for i, r := range run {
		if !bytes.Equal(r.digest[:hintSize], hints[i*hintSize:(i+1)*hintSize]) {
			return false
		}
	}
	return true
}

// reportRun reports the first difference in a run of text deltas.
func (c *comparison) reportRun(e entry, run []place) error {
	i := 0
	for i < min(len(run), e.deltas) && bytes.Equal(run[i].digest[:hintSize], e.hints[i*hintSize:(i+1)*hintSize]) {
		i++
	}
	ord := e.ord + int64(i)
	switch {
	case i == len(run):
		return c.report(Removed, 0, ord, "The text delta with number %d of its session was removed. The run of deltas ends with event %d.",
			ord, e.seq)
	case i == e.deltas, len(run) > e.deltas && run[i].ord != ord:
		return c.report(Inserted, run[i].seq, run[i].ord, "Event %d (text) was inserted.", run[i].seq)
	case run[i].ord != ord:
		return c.report(Removed, 0, ord, "The text delta with number %d of its session was removed. The event after it is %d.", ord, run[i].seq)
	}
	return c.report(Changed, run[i].seq, ord, "Event %d (text) was changed.", run[i].seq)
}

const readRow = `SELECT session_id, turn_id, seq, ord, at, delta, kind, data::text FROM events WHERE session_id = $1 AND seq = $2
    AND at = $3`

// reportMoved reports an event that belongs to another place of the link, whose own event is gone.
func (c *comparison) reportMoved(p place) (bool, error) {
	var r row
	err := c.v.tx.QueryRow(c.ctx, readRow, *c.link.SessionID, p.seq, p.at).Scan(&r.session, &r.turn, &r.seq, &r.ord, &r.at, &r.delta,
		&r.kind, &r.data)
	if err != nil {
		return false, fmt.Errorf("read event %d: %w", p.seq, err)
	}
	for _, e := range c.entries {
		if e.deltas > 0 || e.seq == p.seq || c.present[e.digest] {
			continue
		}
		r.seq, r.ord, r.at = e.seq, e.ord, e.at
		if r.digestOf(c.link.Salt) == e.digest {
			return true, c.report(Reordered, p.seq, p.ord, "Event %d (%s) is in the place of another one: it was event %d.", p.seq, p.kind, e.seq)
		}
	}
	return false, nil
}
