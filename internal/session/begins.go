package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// beginChange is the first turn of a new session.
type beginChange struct {
	workspace, session uuid.UUID
	turn               NewTurn
	message, open      event.Event
}

// isPlain reports whether the message and the limits describe the whole turn.
func (n NewTurn) isPlain() bool {
	return n.Message.Skill == "" && n.Message.Label == "" && n.MaxCostUSD == nil && n.Prompt == nil && n.Schema == nil && n.Tools == nil &&
		n.Options == nil && n.Supplied == nil &&
		len(n.Secrets) == 0 && n.AgentVersion == uuid.Nil && n.Rejected == nil && n.Callback == uuid.Nil && n.Job.Args != nil
}

// Begin starts a plain turn, which is described by its message and its limits, in a new session.
// Turns that begin at the same time share a transaction. It returns where the turn's stream begins.
// Tx.Begin starts all other turns. An error that is ErrUnknownOutcome means that the turn may be
// stored.
func (s *Store) Begin(ctx context.Context, workspace, session uuid.UUID, n NewTurn) (eventlog.From, error) {
	if !n.isPlain() {
		return eventlog.From{}, errors.New("the turn is not a plain one: Tx.Begin starts it")
	}
	n.Message.Content = event.Plain(n.Message.Content)
	c := beginChange{workspace: workspace, session: session, turn: n}
	var err error
	if c.message.Data, err = event.Encode(n.Message); err != nil {
		return eventlog.From{}, err
	}
	if c.open.Data, err = event.Encode(event.Open{SessionID: session}); err != nil {
		return eventlog.From{}, err
	}
	c, err = s.begins.commitChange(ctx, c)
	return c.startCursor(), err
}

func (c *beginChange) startCursor() eventlog.From {
	return eventlog.From{Session: c.session, Seq: c.open.Seq - 1, Since: c.open.At}
}

// beginTurns runs the transaction of several first turns.
func (s *Store) beginTurns(ctx context.Context, changes []*beginChange) error {
	written := false
	err := replan.Pipelined(ctx, s.pool, func(tx *replan.Tx) error {
		written = false
		queuePlans(tx)
		rows, err := s.q.WithTx(tx).TurnsBegin(ctx, beginParams(changes))
		if err != nil {
			return fmt.Errorf("begin turns: %w", err)
		}
		of := make(map[uuid.UUID]db.TurnsBeginRow, len(rows))
		for _, r := range rows {
			of[r.ID] = r
		}
		for _, c := range changes {
			r := of[c.turn.ID]
			c.message = event.Event{Seq: r.MessageSeq, Ord: 1, Session: c.session, Turn: c.turn.ID, At: r.At, Kind: event.KindMessage,
				Data: c.message.Data}
			c.open = event.Event{Seq: r.OpenSeq, Ord: 2, Session: c.session, Turn: c.turn.ID, At: r.At, Kind: event.KindOpen, Data: c.open.Data}
			s.events.Expect(c.startCursor()) // before the commit: afterwards a worker may write at once
		}
		written = true
		crashpoint.Hit("accept.before_commit")
		return nil
	})
	if err != nil && written && pgerr.IsUnconfirmed(err) {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	if err != nil {
		return err
	}
	for _, c := range changes {
		s.events.Publish(c.session, []event.Event{c.message, c.open})
	}
	return nil
}

func beginParams(changes []*beginChange) (p db.TurnsBeginParams) {
	for _, c := range changes {
		n := &c.turn
		p.Ids, p.Sessions, p.Workspaces = append(p.Ids, n.ID), append(p.Sessions, c.session), append(p.Workspaces, c.workspace)
		p.MessageIds, p.AnswerIds = append(p.MessageIds, uuid.Must(uuid.NewV7())), append(p.AnswerIds, uuid.Must(uuid.NewV7()))
		p.MaxResponseSeconds, p.MaxTurns = append(p.MaxResponseSeconds, int32(n.MaxResponseSeconds)), append(p.MaxTurns, int32(n.MaxTurns))
		p.KeyIds, p.Scopes = append(p.KeyIds, n.Key), append(p.Scopes, strings.Join(n.Scopes, " "))
		p.RequestHashes, p.Names = append(p.RequestHashes, n.RequestHash), append(p.Names, n.Named)
		p.Args, p.Dues = append(p.Args, string(n.Job.Args)), append(p.Dues, n.Job.Due)
		p.Titles, p.Contents = append(p.Titles, Title(n.Message.Content)), append(p.Contents, n.Message.Content)
		p.Origins = append(p.Origins, string(n.Origin))
		p.EndUsers, p.Metadatas = append(p.EndUsers, n.Labels.User), append(p.Metadatas, string(n.Labels.encodeMetadata()))
		p.Messages, p.Opens = append(p.Messages, string(c.message.Data)), append(p.Opens, string(c.open.Data))
	}
	return p
}
