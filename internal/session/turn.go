package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
)

// Turn is a message to the agent and the work on its answer.
type Turn struct {
	ID          uuid.UUID
	SessionID   uuid.UUID
	WorkspaceID uuid.UUID
	State       State
	StateAt     time.Time
	Error       *string    // code of the failure; nil: none
	StartSeq    int64      // seq of its open event
	EndSeq      *int64     // seq of its done event; nil: the turn has not ended
	Epoch       int64      // epoch of its newest lease
	Node        *int32     // replica that ran it last; nil: none
	JobID       *int64     // River job that will run it; nil: the turn waits for a place
	HaltedAt    *time.Time // when the worker of a canceled turn stopped; nil: it may still run
	CreatedAt   time.Time

	MaxResponseSeconds int32
	MaxTurns           int32    // steps
	MaxCostUSD         *float64 // nil: no limit
	ActiveSeconds      float64  // running time of earlier attempts

	EndUser        *string  // the end user of its message, else of its session
	KeyID          *string  // API key that sent the message; nil: an administrator's command
	Scopes         []string // scopes of that key
	RequestHash    []byte   // SHA-256 of the request that started it
	Prompt         []byte   // sealed: the model's input in place of the message; nil: the message itself
	ResponseSchema []byte   // nil: none
	Tools          []byte   // the caller's own tools; nil: none
	Options        []byte   // what the caller chose; nil: nothing
	Secrets        []string // names of the credentials sent with the message
	Origin         []byte   // the request that sent the message; nil: unknown
	Rejected       json.RawMessage

	Agent        string // name of the agent; "": a turn of an earlier release that has not started
	AgentVersion int    // 0: a draft
	SkillVersion int    // 0: no skill

	AttemptReason event.AttemptReason // why its next attempt begins; "": it is the first
}

// turnOf converts a row of turns.
func turnOf(r db.Turn) Turn {
	t := Turn{
		ID: r.ID, SessionID: r.SessionID, WorkspaceID: r.WorkspaceID, State: State(r.State), StateAt: r.StateAt, Error: r.Error,
		StartSeq: r.StartSeq, EndSeq: r.EndSeq, Epoch: r.Epoch, Node: r.Node, JobID: r.JobID, HaltedAt: r.HaltedAt, CreatedAt: r.CreatedAt,
		MaxResponseSeconds: r.MaxResponseSeconds, MaxTurns: r.MaxTurns, MaxCostUSD: r.MaxCostUSD, ActiveSeconds: r.ActiveSeconds,
		EndUser: r.EndUser, KeyID: r.KeyID, Scopes: r.Scopes, RequestHash: r.RequestHash, Prompt: r.Prompt,
		ResponseSchema: r.ResponseSchema, Tools: r.Tools, Options: r.Options, Secrets: r.Secrets, Origin: r.Origin, Rejected: r.Rejected,
	}
	if r.Agent != nil && r.AgentVersion != nil {
		t.Agent, t.AgentVersion = *r.Agent, int(*r.AgentVersion)
	}
	if r.SkillVersion != nil {
		t.SkillVersion = int(*r.SkillVersion)
	}
	if r.AttemptReason != nil {
		t.AttemptReason = event.AttemptReason(*r.AttemptReason)
	}
	return t
}

// TurnByID reads a turn of any workspace.
func (s *Store) TurnByID(ctx context.Context, id uuid.UUID) (Turn, error) {
	return readTurn(ctx, s.q, id)
}

// TurnByID is Store.TurnByID inside the change.
func (tx *Tx) TurnByID(ctx context.Context, id uuid.UUID) (Turn, error) {
	return readTurn(ctx, tx.q, id)
}

func readTurn(ctx context.Context, q *db.Queries, id uuid.UUID) (Turn, error) {
	row, err := q.TurnGet(ctx, id)
	if err != nil {
		return Turn{}, fmt.Errorf("read turn: %w", err)
	}
	return turnOf(row), nil
}
