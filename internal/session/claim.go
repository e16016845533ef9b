package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/replan"
)

// ClaimRequest asks for a queued turn.
type ClaimRequest struct {
	Session uuid.UUID
	Turn    uuid.UUID
	// Admit reports whether the process has a place for a turn of the workspace; nil: it has. It is
	// called at most once in an attempt to claim, and again if the attempt is repeated.
	Admit func(workspace uuid.UUID) bool
}

// Claimed is the outcome of a ClaimRequest.
type Claimed struct {
	Turn   Turn
	Lease  eventlog.Lease
	Ours   bool // else the turn is not queued any more, or waits without a job until there is a place
	Locked bool // another transaction holds the session's lock: nothing was done
}

// ClaimTurns gives queued turns to this node, all in one transaction, and returns an outcome for each.
// No two claims may be of the same session.
func (s *Store) ClaimTurns(ctx context.Context, claims []ClaimRequest, lease time.Duration) (outcomes []Claimed, err error) {
	var b *claiming
	err = replan.Pipelined(ctx, s.pool, func(tx *replan.Tx) error {
		b = &claiming{s: s, claims: claims, outcomes: make([]Claimed, len(claims)), lease: lease}
		queuePlans(tx)
		return b.write(ctx, s.q.WithTx(tx), db.New(tx.Later()))
	})
	if err != nil {
		return nil, err
	}
	for _, ev := range b.started {
		s.events.Publish(ev.Session, []event.Event{ev})
	}
	return b.outcomes, nil
}

// claiming is one transaction of claims.
type claiming struct {
	s        *Store
	claims   []ClaimRequest
	outcomes []Claimed
	lease    time.Duration
	started  []event.Event
}

func (b *claiming) write(ctx context.Context, q, later *db.Queries) error {
	ids := make([]uuid.UUID, len(b.claims))
	for i, c := range b.claims {
		ids[i] = c.Session
	}
	rows, err := q.SessionsLock(ctx, ids)
	if err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	heads := make(map[uuid.UUID]db.SessionsLockRow, len(rows))
	for _, r := range rows {
		heads[r.ID] = r
	}
	admitted, workspaces, unplaced := b.admit(heads)
	turns, err := b.take(ctx, q, later, admitted, workspaces)
	if err != nil {
		return err
	}
	for i := range b.claims {
		c, o := &b.claims[i], &b.outcomes[i]
		if _, asked := admitted[c.Turn]; !asked {
			continue
		}
		if t, ok := turns[c.Turn]; ok {
			o.Turn, o.Ours = t, true
			o.Lease = eventlog.Lease{Session: c.Session, Turn: c.Turn, Epoch: t.Epoch}
		} else {
			unplaced = append(unplaced, c.Turn)
		}
	}
	if len(unplaced) > 0 {
		if err := later.TurnsUnplace(ctx, unplaced); err != nil {
			return fmt.Errorf("let turns wait: %w", err)
		}
	}
	return b.start(ctx, later, heads)
}

// admit sorts the claims whose sessions are locked by whether there is a place for them here.
func (b *claiming) admit(heads map[uuid.UUID]db.SessionsLockRow) (admitted map[uuid.UUID]int64, workspaces, unplaced []uuid.UUID) {
	admitted = make(map[uuid.UUID]int64, len(b.claims))
	for i, c := range b.claims {
		h, ok := heads[c.Session]
		switch {
		case !ok:
			b.outcomes[i].Locked = true
		case c.Admit != nil && !c.Admit(h.WorkspaceID):
			unplaced = append(unplaced, c.Turn)
		default:
			admitted[c.Turn] = h.Epoch
			workspaces = append(workspaces, h.WorkspaceID)
		}
	}
	return admitted, workspaces, unplaced
}

// take claims the turns for which their workspaces have room.
func (b *claiming) take(ctx context.Context, q, later *db.Queries, admitted map[uuid.UUID]int64, workspaces []uuid.UUID) (map[uuid.UUID]Turn, error) {
	if len(admitted) == 0 {
		return nil, nil
	}
	p := db.TurnsClaimParams{Node: b.s.events.Node(), LeaseSeconds: b.lease.Seconds(), States: Claim.from()}
	for turn, epoch := range admitted {
		p.Ids, p.Epochs = append(p.Ids, turn), append(p.Epochs, epoch)
	}
	if err := later.WorkspacesQueue(ctx, workspaces); err != nil {
		return nil, fmt.Errorf("queue for places: %w", err)
	}
	rows, err := q.TurnsClaim(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("claim turns: %w", err)
	}
	turns := make(map[uuid.UUID]Turn, len(rows))
	for _, t := range rows {
		turns[t.ID] = turnOf(t)
	}
	return turns, nil
}

// start writes the first event of each attempt.
func (b *claiming) start(ctx context.Context, later *db.Queries, heads map[uuid.UUID]db.SessionsLockRow) error {
	var p db.SessionsStartParams
	for _, o := range b.outcomes {
		if !o.Ours {
			continue
		}
		h := heads[o.Lease.Session]
		data, err := event.Encode(event.Started{Epoch: o.Lease.Epoch, Node: strconv.Itoa(int(b.s.events.Node()))})
		if err != nil {
			return err
		}
		b.started = append(b.started, event.Event{Seq: h.Seq, Ord: h.Ord, Session: h.ID, Turn: o.Lease.Turn, At: h.At, Kind: event.KindStarted, Data: data})
		p.Sessions, p.Turns, p.Epochs = append(p.Sessions, h.ID), append(p.Turns, o.Lease.Turn), append(p.Epochs, o.Lease.Epoch)
		p.Seqs, p.Ords, p.Ats, p.Datas = append(p.Seqs, h.Seq), append(p.Ords, h.Ord), append(p.Ats, h.At), append(p.Datas, string(data))
	}
	if len(p.Sessions) == 0 {
		return nil
	}
	if err := later.SessionsStart(ctx, p); err != nil {
		return fmt.Errorf("start turns: %w", err)
	}
	return nil
}
