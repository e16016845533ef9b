package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/turn"
)

// StartTurn stores a message and starts its turn, or finds the turn that it started before. raw is
// the request that identifies the message; nil: req already has a hash. base is the public address
// for links to a turn in progress.
func (s *Server) StartTurn(ctx context.Context, base string, c Caller, req turn.Request, raw []byte) (turn.Started, error) {
	if err := ctx.Err(); err != nil {
		return turn.Started{}, err
	}
	started, err := s.Turns.Start(ctx, c.Request(req, raw))
	if busy := inTheWay(err); busy != nil {
		Link(base, c.Workspace, busy)
	}
	if err == nil {
		noteTurn(ctx, started.Session, started.Turn)
	}
	return started, err
}

// Request returns a message with this caller as its sender.
func (c Caller) Request(req turn.Request, raw []byte) turn.Request {
	req.Workspace, req.Key, req.Scopes = c.Workspace, c.Key, c.Scopes.Expand().Strings()
	if raw != nil {
		if c.Only != nil { // a token with another limit gets none of the turns of this one
			raw = append([]byte(c.Only.String()+"\n"), raw...)
		}
		hash := sha256.Sum256(raw)
		req.Hash = hash[:]
	}
	return req
}

// StartChatTurn stores a message, with the request body raw, and starts its turn. A chat client
// that lost its stream sends the whole conversation again: if the session is answering this very
// request, StartChatTurn returns its turn instead.
func (s *Server) StartChatTurn(w http.ResponseWriter, r *Request, req turn.Request, raw []byte) (Reading, error) {
	started, err := s.StartTurn(r.Context(), s.Base(r.Request), r.Caller, req, raw)
	ctx, cancel := s.Brief(context.WithoutCancel(r.Context()))
	defer cancel()
	if err == nil {
		rd := Reading{Turn: started.Turn, From: started.From, Own: namesOfTools(req.Tools), Structured: req.Schema != nil,
			Forced:   req.Options.Forced,
			Rejected: started.Rejected, Resent: started.Resent}
		if started.Replayed {
			w.Header().Set("Idempotent-Replayed", "true")
			if err := s.describeReading(ctx, r.Caller, &rd); err != nil {
				return rd, err
			}
			return rd, rd.CheckReader(r.Caller)
		}
		return rd, nil
	}
	busy := inTheWay(err)
	if busy == nil {
		return Reading{}, err
	}
	t, _, failed := s.Sessions.Answer(ctx, r.Caller.Workspace.ID, busy.TurnID)
	if failed == nil && bytes.Equal(t.RequestHash, r.Caller.Request(req, raw).Hash) {
		w.Header().Set("Idempotent-Replayed", "true")
		rd := readingOf(t)
		return rd, rd.CheckReader(r.Caller)
	}
	return Reading{}, err
}

// inTheWay returns the turn in progress that an error concerns, or nil.
func inTheWay(err error) *session.ActiveTurn {
	f := fault.From(err)
	if f == nil {
		return nil
	}
	t, _ := f.Detail.Turn.(*session.ActiveTurn)
	return t
}

// readingOf returns a reading of a turn from its first row.
func readingOf(t session.Turn) Reading {
	rd := Reading{Turn: t.ID, From: eventlog.From{Session: t.SessionID, Seq: t.StartSeq - 1, Since: t.CreatedAt},
		Structured: t.ResponseSchema != nil, starter: t.KeyID}
	if t.Tools != nil {
		var own []turn.CallerTool
		_ = json.Unmarshal(t.Tools, &own) // encoded from the same type
		rd.Own = namesOfTools(own)
	}
	if t.Rejected != nil {
		_ = json.Unmarshal(t.Rejected, &rd.Rejected) // encoded from the same type
	}
	if o, err := turn.ParseOptions(t); err == nil {
		rd.Forced = o.Forced
	}
	return rd
}

func namesOfTools(tools []turn.CallerTool) map[string]bool {
	names := make(map[string]bool, len(tools))
	for _, t := range tools {
		names[t.Name] = true
	}
	return names
}

// describeReading adds the properties of its turn to a reading.
func (s *Server) describeReading(ctx context.Context, c Caller, rd *Reading) error {
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, rd.Turn)
	about := readingOf(t)
	rd.Own, rd.Structured, rd.Forced, rd.Rejected, rd.starter = about.Own, about.Structured, about.Forced, about.Rejected, about.starter
	return err
}

// CheckReader returns nil for a caller that may read the turn: the key that started it, and keys
// that may read sessions.
func (rd Reading) CheckReader(c Caller) error {
	if rd.starter != nil && *rd.starter == c.Key || c.Scopes.Allows(apikey.SessionsRead) {
		return nil
	}
	return MissingScope(apikey.SessionsRead)
}

// AttachTurn returns the turn in progress of a session, for a client that attaches to it; ok is
// false if there is none.
func (s *Server) AttachTurn(ctx context.Context, c Caller, id uuid.UUID) (p TurnProgress, ok bool, err error) {
	if p, ok, err = s.CurrentTurn(ctx, c, id); ok && err == nil {
		err = p.CheckReader(c)
	}
	return p, ok, err
}

// TurnCalls returns the ids of the calls that the turns of a reading have made so far.
func (s *Server) TurnCalls(ctx context.Context, c Caller, rd Reading) (map[string]bool, error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	calls := make(map[string]bool)
	for next := &rd; next != nil; next = next.Then {
		t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, next.Turn)
		if err != nil {
			return nil, err
		}
		log, err := s.Sessions.ReadTurnLog(ctx, t)
		if err != nil {
			return nil, err
		}
		for _, ev := range log.Events {
			body, err := ev.Body()
			if err != nil {
				return nil, fmt.Errorf("read row %d: %w", ev.Seq, err)
			}
			switch b := body.(type) {
			case event.ToolUse:
				calls[b.ToolUseID] = true
			case event.InputRequired:
				for _, c := range b.Step() {
					calls[c.ToolUseID] = true
				}
			}
		}
	}
	return calls, nil
}

// TurnProgress describes the turn in progress in a session.
type TurnProgress struct {
	Reading                   // the turn in progress
	Asked   *session.Approval // its newest question, answered or not; nil: none
}

// CurrentTurn returns the turn in progress of a session; ok is false if there is none.
func (s *Server) CurrentTurn(ctx context.Context, c Caller, id uuid.UUID) (p TurnProgress, ok bool, err error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	h, err := s.Sessions.Head(ctx, c.Workspace.ID, id)
	if err != nil || h.Erased || h.Status() != session.Thinking {
		return p, false, err
	}
	p.Reading = Reading{Turn: h.Turn, From: eventlog.From{Session: id, Seq: h.StartSeq - 1, Since: h.TurnAt}}
	if err := s.describeReading(ctx, c, &p.Reading); err != nil {
		return p, false, err
	}
	newest, err := s.Sessions.Approvals(ctx, c.Workspace.ID, session.ApprovalQuery{Session: &id, Limit: 1})
	if err != nil {
		return p, false, err
	}
	if len(newest.Data) > 0 && newest.Data[0].TurnID == h.Turn {
		p.Asked = &newest.Data[0]
	}
	return p, true, nil
}

// CallerSession returns the session of a chat, by the name that its client gave it; ok is false if
// there is none yet.
func (s *Server) CallerSession(ctx context.Context, c Caller, callerID string) (id uuid.UUID, ok bool, err error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	return s.Sessions.ByCaller(ctx, c.Workspace.ID, callerID)
}

// SessionApproval returns an approval of a session. An approval of another session does not exist.
func (s *Server) SessionApproval(ctx context.Context, c Caller, in, id uuid.UUID) (session.Approval, error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	a, err := s.Sessions.Approval(ctx, c.Workspace.ID, id)
	if err == nil && a.SessionID != in {
		err = fault.New(fault.ApprovalNotFound, "No approval %s in this conversation.", id)
	}
	return a, err
}

// DecideApproval answers a question.
func (s *Server) DecideApproval(ctx context.Context, c Caller, a turn.Answer) error {
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	a.Key, a.Scopes = c.Key, c.Scopes.Expand().Strings()
	_, err := s.Turns.Decide(ctx, c.Workspace.ID, a)
	return err
}

// AfterApproval returns a reading of a turn after a question.
func (s *Server) AfterApproval(ctx context.Context, c Caller, asked session.Approval) (Reading, error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, asked.TurnID)
	rd := readingOf(t)
	rd.After = asked.ApprovalID
	return rd, err
}

// ErrNoTurn means that the workspace has no such turn, that the caller may not read it, or that it
// was erased.
var ErrNoTurn = errors.New("no such turn")

// FindTurn returns a reading of a turn of the workspace.
func (s *Server) FindTurn(ctx context.Context, c Caller, id uuid.UUID) (rd Reading, err error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	if _, ok, err := s.Sessions.SessionOf(ctx, c.Workspace.ID, id); err != nil || !ok {
		return rd, cmp.Or(err, ErrNoTurn)
	}
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, id)
	if err != nil {
		return rd, err
	}
	if rd = readingOf(t); rd.CheckReader(c) != nil {
		err = ErrNoTurn
	}
	return rd, err
}

// TurnOptions returns the options of a turn.
func (s *Server) TurnOptions(ctx context.Context, c Caller, id uuid.UUID) (o turn.Options, err error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, id)
	if err != nil {
		return o, err
	}
	return turn.ParseOptions(t)
}
