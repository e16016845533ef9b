package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/replan"
)

// endChange is the end of one turn.
type endChange struct {
	turn   Turn
	ending Ending
	ended  bool
	about  Finished
}

// CompleteTurn ends a turn that has an answer, under the epoch of e, in one transaction with other
// ends. ended is false if nothing was done: another transaction holds the session's lock, the end
// affects more than the turn (a turn that is lined up, files, callbacks), or the lease is lost. The
// caller then ends the turn with an Update, which waits for the lock.
func (s *Store) CompleteTurn(ctx context.Context, t Turn, e Ending) (ended bool, err error) {
	if e.Trigger != Complete || e.Epoch == 0 || !e.Halted || len(e.Attachments) > 0 {
		return false, nil
	}
	c, err := s.ends.commitChange(ctx, endChange{turn: t, ending: e})
	if c.ended {
		s.reportFinish(ctx, c.about)
	}
	return c.ended, err
}

// completeTurns runs the transaction of several ends.
func (s *Store) completeTurns(ctx context.Context, changes []*endChange) error {
	var b *completing
	err := replan.Pipelined(ctx, s.pool, func(on *replan.Tx) error {
		b = &completing{s: s}
		queuePlans(on)
		err := b.writeEnds(ctx, on, changes)
		crashpoint.Hit("finish.before_commit")
		return err
	})
	if err != nil {
		return fmt.Errorf("end turns: %w", err)
	}
	for i, c := range b.changes {
		c.ended = true
		s.events.Publish(b.txs[i].row.ID, b.txs[i].log.News())
	}
	return nil
}

// completing is one transaction of ends. Each change has its own Tx, which writes nothing.
type completing struct {
	s       *Store
	changes []*endChange
	txs     []*Tx
	turns   db.TurnsEndParams
	answers db.MessagesCloseParams
}

func (b *completing) writeEnds(ctx context.Context, on *replan.Tx, changes []*endChange) error {
	q, later := b.s.q.WithTx(on), db.New(on.Later())
	ids, n := make([]uuid.UUID, len(changes)), 0
	of := make(map[uuid.UUID]*endChange, len(changes))
	for i, c := range changes {
		ids[i], of[c.turn.ID], n = c.turn.ID, c, max(n, len(c.ending.Rest))
	}
	if err := later.TurnsLock(ctx, ids); err != nil {
		return fmt.Errorf("lock turns: %w", err)
	}
	rows, err := q.TurnsClosing(ctx, int32(n+usualEvents), eventlog.Skew.Seconds())
	if err != nil {
		return fmt.Errorf("lock turns: %w", err)
	}
	for _, r := range rows {
		c := of[r.ID]
		if r.Entails || r.Newest == nil || *r.Newest != r.ID || !slices.Contains(c.ending.Trigger.fromStates(), r.State) ||
			r.Epoch != c.ending.Epoch {
			continue
		}
		tx := &Tx{Tx: on, s: b.s, q: q, fence: r.Fence,
			row: db.Session{ID: c.turn.SessionID, Epoch: r.Epoch, TurnID: r.Newest},
			log: eventlog.Draft{Tx: on, Session: c.turn.SessionID, At: r.Now, Seq: r.LastSeq, Ord: r.LastOrd, Free: r.Seqs}}
		if b.addEnd(ctx, tx, c, r) != nil {
			continue // alone it fails again, without affecting others
		}
	}
	if len(b.changes) == 0 {
		return nil
	}
	if err := later.TurnsEnd(ctx, b.turns); err != nil {
		return err
	}
	return later.MessagesClose(ctx, b.answers)
}

// addEnd adds the end of a turn to the statements.
func (b *completing) addEnd(ctx context.Context, tx *Tx, c *endChange, r db.TurnsClosingRow) error {
	log := make([]db.TurnEventsRow, len(r.LogSeqs))
	for i := range log {
		log[i] = db.TurnEventsRow{Seq: r.LogSeqs[i], Kind: r.LogKinds[i], Data: []byte(r.LogDatas[i])}
	}
	sum, err := summarizeLog(log)
	if err != nil {
		return err
	}
	closing := Closing{turn: c.turn, state: State(r.State), sum: sum}
	turn, answer, err := tx.recordEnding(ctx, &closing, c.ending)
	if err != nil {
		return err
	}
	c.about = closing.finishedOf(c.ending)
	b.changes, b.txs = append(b.changes, c), append(b.txs, tx)
	b.addTurn(turn)
	b.addAnswer(answer)
	return nil
}

func (b *completing) addTurn(p db.TurnEndParams) {
	t := &b.turns
	t.Ids, t.Sessions, t.Epochs = append(t.Ids, p.ID), append(t.Sessions, p.SessionID), append(t.Epochs, p.Epoch)
	t.LastSeqs, t.LastOrds = append(t.LastSeqs, p.LastSeq), append(t.LastOrds, p.LastOrd)
	cost := ""
	if p.Cost != nil {
		cost = strconv.FormatFloat(*p.Cost, 'f', -1, 64)
	}
	t.Inputs, t.Outputs, t.Costs = append(t.Inputs, p.Input), append(t.Outputs, p.Output), append(t.Costs, cost)
	for i, seq := range p.Seqs {
		t.EventSeqs, t.EventSessions, t.EventTurns = append(t.EventSeqs, seq), append(t.EventSessions, p.SessionID), append(t.EventTurns, p.ID)
		t.EventAts, t.EventOrds = append(t.EventAts, p.At), append(t.EventOrds, p.Ord+int64(i)+1)
	}
	t.EventKinds, t.EventDatas = append(t.EventKinds, p.Kinds...), append(t.EventDatas, p.Datas...)
}

func (b *completing) addAnswer(p db.MessageCloseParams) {
	replies := make([]string, len(p.Replies))
	for i, seq := range p.Replies {
		replies[i] = strconv.FormatInt(seq, 10)
	}
	m := &b.answers
	m.Turns, m.Sessions, m.Sinces = append(m.Turns, p.TurnID), append(m.Sessions, p.SessionID), append(m.Sinces, p.Since)
	m.Replies, m.LastSeqs = append(m.Replies, "{"+strings.Join(replies, ",")+"}"), append(m.LastSeqs, p.LastSeq)
	m.ToolCalls, m.Refs = append(m.ToolCalls, string(p.ToolCalls)), append(m.Refs, string(p.Refs))
	m.Results, m.Usages = append(m.Results, string(p.StructuredResult)), append(m.Usages, string(p.Usage))
}

// queuePlans makes PostgreSQL plan the statements of a group once for any number of changes, and
// find rows by their keys. A plan for each number takes longer than the changes. A plan made while
// the tables were small would read whole tables until PostgreSQL analyzes them: MessagesClose took
// 10 ms for six answers.
func queuePlans(tx *replan.Tx) {
	tx.Queue(`SET LOCAL plan_cache_mode = force_generic_plan`)
	tx.Queue(`SET LOCAL random_page_cost = 0.1`)
}
