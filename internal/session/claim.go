package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/replan"
)

// ClaimRequest requests a queued turn.
type ClaimRequest struct {
	Session uuid.UUID
	Turn    uuid.UUID
	Lease   time.Duration // how long the lease lasts without a renewal
	// Admit reports whether the process has a place for a turn of the workspace; nil: it always
	// has. It is called at most once in an attempt to claim, and again if the attempt is repeated.
	Admit func(workspace uuid.UUID) bool
}

// Claimed is the outcome of a ClaimRequest.
type Claimed struct {
	Turn     Turn
	Lease    eventlog.Lease
	Agent    Agent
	Log      *TurnLog // the log of a first attempt, unless it is large; nil: Store.ReadTurnLog reads it
	Ours     bool     // else the turn is no longer queued, or waits without a job until a place is free
	Budgeted bool     // its workspace has budgets
	HasTools bool     // its workspace has rules of tools, or tools of its own
	Locked   bool     // another transaction, or another claim, has the session's lock: nothing was done
}

// Agent is what the agent of a turn is, in the version that the turn records.
type Agent struct {
	Model         string   // "": the service's default
	Effort        string   // "": the model's own
	Fallbacks     []string // models that answer in place of Model if it fails, in this order
	Instructions  string
	Summaries     bool              // of the reasoning are requested, stored and sent
	HistoryTokens int               // maximum number of tokens of earlier messages that the model receives
	Tools         map[string]string // the offered tools with their labels; nil: every tool
	Rules         map[string]string // rules of tools, beside those of the workspace
}

// ClaimTurn gives a queued turn to this node. Simultaneous claims share a transaction: the claims
// of one workspace pass one transaction at a time in the whole installation, so the number of
// transactions limits how many turns start in a second. If ctx ends while a claim is running, Claim
// still waits for it.
func (s *Store) ClaimTurn(ctx context.Context, r ClaimRequest) (Claimed, error) {
	c, err := s.claims.commitChange(ctx, claimChange{ClaimRequest: r})
	return c.outcome, err
}

// claimChange is a claim and its outcome.
type claimChange struct {
	ClaimRequest
	outcome Claimed
}

// claimTurns runs the transaction of several claims.
func (s *Store) claimTurns(ctx context.Context, claims []*claimChange) error {
	var b *claiming
	err := replan.Pipelined(ctx, s.pool, func(tx *replan.Tx) error {
		b = &claiming{s: s, claims: claims}
		queuePlans(tx)
		return b.writeClaims(ctx, s.q.WithTx(tx), db.New(tx.Later()))
	})
	if err != nil {
		return err
	}
	for _, ev := range b.started {
		s.events.Publish(ev.Session, []event.Event{ev})
	}
	return nil
}

// claiming is one transaction of claims.
type claiming struct {
	s       *Store
	claims  []*claimChange
	started []event.Event
}

func (b *claiming) writeClaims(ctx context.Context, q, later *db.Queries) error {
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
	admitted, workspaces, unplaced := b.admitClaims(heads)
	claimed, err := b.takeTurns(ctx, q, later, admitted, workspaces)
	if err != nil {
		return err
	}
	for _, c := range b.claims {
		if _, asked := admitted[c.Turn]; !asked || c.outcome.Locked {
			continue
		}
		if o, ok := claimed[c.Turn]; ok {
			c.outcome = o
		} else {
			unplaced = append(unplaced, c.Turn)
		}
	}
	if len(unplaced) > 0 {
		if err := later.TurnsUnplace(ctx, unplaced); err != nil {
			return fmt.Errorf("let turns wait: %w", err)
		}
	}
	return b.startAttempts(ctx, later, heads)
}

// admitClaims separates the claims whose sessions are locked by whether this process has a place
// for them. It takes one claim per session: a turn that is queued twice is claimed once.
func (b *claiming) admitClaims(heads map[uuid.UUID]db.SessionsLockRow) (admitted map[uuid.UUID]int64, workspaces, unplaced []uuid.UUID) {
	admitted = make(map[uuid.UUID]int64, len(b.claims))
	seen := make(map[uuid.UUID]bool, len(b.claims))
	for _, c := range b.claims {
		h, ok := heads[c.Session]
		c.outcome = Claimed{Locked: !ok || seen[c.Session]}
		switch {
		case c.outcome.Locked:
			continue
		case c.Admit != nil && !c.Admit(h.WorkspaceID):
			unplaced = append(unplaced, c.Turn)
		default:
			admitted[c.Turn] = h.Epoch
			workspaces = append(workspaces, h.WorkspaceID)
		}
		seen[c.Session] = true
	}
	return admitted, workspaces, unplaced
}

// takeTurns claims the turns for which their workspaces have room.
func (b *claiming) takeTurns(ctx context.Context, q, later *db.Queries, admitted map[uuid.UUID]int64,
	workspaces []uuid.UUID) (map[uuid.UUID]Claimed, error) {
	if len(admitted) == 0 {
		return nil, nil
	}
	p := db.TurnsClaimParams{Node: b.s.events.Node(), LeaseSeconds: b.claims[0].ClaimRequest.Lease.Seconds(),
		SkewSeconds: eventlog.Skew.Seconds(), States: Claim.fromStates()}
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
	claimed := make(map[uuid.UUID]Claimed, len(rows))
	for _, r := range rows {
		if claimed[r.Turn.ID], err = claimedOf(r); err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// claimedOf converts a row of TurnsClaim.
func claimedOf(r db.TurnsClaimRow) (Claimed, error) {
	t := turnOf(r.Turn)
	c := Claimed{
		Turn: t, Lease: eventlog.Lease{Session: t.SessionID, Turn: t.ID, Epoch: t.Epoch}, Ours: true, Budgeted: r.Budgeted, HasTools: r.HasTools,
		Agent: Agent{Instructions: r.Instructions, Fallbacks: r.FallbackModels, HistoryTokens: int(r.HistoryTokens),
			Summaries: r.ReasoningSummaries},
	}
	if r.Model != nil {
		c.Agent.Model = *r.Model
	}
	if r.Effort != nil {
		c.Agent.Effort = *r.Effort
	}
	for raw, to := range map[*[]byte]*map[string]string{&r.Tools: &c.Agent.Tools, &r.Rules: &c.Agent.Rules} {
		if *raw == nil {
			continue
		}
		if err := json.Unmarshal(*raw, to); err != nil {
			return c, fmt.Errorf("read the agent of turn %s: %w", t.ID, err)
		}
	}
	if r.Seqs == nil { // a later attempt, or a large message
		return c, nil
	}
	c.Log = &TurnLog{HasHistory: r.HasHistory, HasAttachments: r.HasAttachments}
	for i, seq := range r.Seqs {
		c.Log.Events = append(c.Log.Events, event.Event{
			Seq: seq, Ord: r.Ords[i], Session: t.SessionID, Turn: t.ID, At: r.Ats[i], Kind: event.Kind(r.Kinds[i]), Data: []byte(r.Datas[i]),
		})
	}
	return c, nil
}

// startAttempts writes the first event of each attempt.
func (b *claiming) startAttempts(ctx context.Context, later *db.Queries, heads map[uuid.UUID]db.SessionsLockRow) error {
	var p db.SessionsStartParams
	for _, c := range b.claims {
		o := &c.outcome
		if !o.Ours {
			continue
		}
		h := heads[o.Lease.Session]
		data, err := event.Encode(event.Started{Epoch: o.Lease.Epoch, Reason: o.Turn.AttemptReason, Node: strconv.Itoa(int(b.s.events.Node())),
			Agent: o.Turn.Agent, AgentVersion: event.AgentVersion(o.Turn.AgentVersion), SkillVersion: o.Turn.SkillVersion})
		if err != nil {
			return err
		}
		ev := event.Event{Seq: h.Seq, Ord: h.Ord, Session: h.ID, Turn: o.Lease.Turn, At: h.At, Kind: event.KindStarted, Data: data}
		b.started = append(b.started, ev)
		if o.Log != nil {
			o.Log.Events = append(o.Log.Events, ev)
		}
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
