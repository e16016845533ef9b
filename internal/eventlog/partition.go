package eventlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

const (
	// dropWait is how long a drop waits for the log's lock. Readers and writers wait behind it, and
	// it may wait twice, for the log and for the partition.
	dropWait = 50 * time.Millisecond
	// dropTries is the number of tries before DropPartitions gives up.
	dropTries = 5
)

// Partition is a part of the log: the text deltas of a day, or the other rows of a month.
type Partition struct {
	Name   string
	Deltas bool
	Ends   time.Time // all rows in it are older
	Bytes  int64     // including its indexes
}

// Partitions lists the partitions of the log.
func (l *Log) Partitions(ctx context.Context) ([]Partition, error) {
	rows, err := l.q.Partitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the partitions of the log: %w", err)
	}
	all := make([]Partition, len(rows))
	for i, p := range rows {
		all[i] = Partition{Name: p.Name, Deltas: p.Delta, Ends: p.Ends.UTC(), Bytes: p.Bytes}
	}
	return all, nil
}

// parsePartition reads the name of a partition, which events_partitions has given it.
func parsePartition(name string) (Partition, error) {
	if day, ok := strings.CutPrefix(name, "events_delta_"); ok {
		begins, err := time.Parse("20060102", day)
		return Partition{Name: name, Deltas: true, Ends: begins.AddDate(0, 0, 1)}, err
	}
	begins, err := time.Parse("events_record_200601", name)
	return Partition{Name: name, Ends: begins.AddDate(0, 1, 0)}, err
}

// Prepare creates the partitions of the log for the coming days. It must succeed once before the
// first write, and be repeated every hour.
func (l *Log) Prepare(ctx context.Context) error {
	if _, err := l.q.EventsPartitions(ctx, 4); err != nil {
		return fmt.Errorf("make partitions of the event log: %w", err)
	}
	return nil
}

// DropPartitions drops partitions one by one, the oldest first: partitions of text deltas that end
// before one time, and those of other rows that end before another. It drops a turn with all its
// deltas or not at all; a reader in the middle of one detects a gap in the ordinals. An error that
// pgerr.IsContended reports means that readers and writers held the lock throughout.
func (l *Log) DropPartitions(ctx context.Context, deltasBefore, recordsBefore time.Time) (dropped []string, err error) {
	for try := 1; ; {
		var name string
		err := replan.InTx(ctx, l.pool, func(tx pgx.Tx) (err error) {
			q := l.q.WithTx(tx)
			if err := q.RetentionPatience(ctx, int32(dropWait.Milliseconds())); err != nil {
				return err
			}
			if name, err = q.EventsDrop(ctx, deltasBefore, recordsBefore); err != nil || name == "" || l.opt.Dropped == nil {
				return err
			}
			p, err := parsePartition(name)
			if err != nil {
				return err
			}
			return l.opt.Dropped(ctx, tx, p.Name, p.Deltas, p.Ends)
		})
		switch {
		case err == nil && name == "":
			return dropped, nil
		case err == nil:
			dropped, try = append(dropped, name), 1
			crashpoint.Hit("retention.between_batches")
		case !pgerr.IsContended(err) || try == dropTries:
			return dropped, fmt.Errorf("drop a partition of the log: %w", err)
		default:
			try++
			sleepContext(ctx, 2*dropWait+rand.N(4*dropWait)) // traffic has the table most of the time
		}
	}
}
