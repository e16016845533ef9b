package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
)

// StoredRows returns the rows of a reading that are stored now, and the state of its turn. If the
// events of a turn were removed, the rows are made of its outcome; ErrNoTurn means that this was
// erased, too.
func (s *Server) StoredRows(ctx context.Context, c Caller, rd Reading) (rows []Row, state session.State, err error) {
	brief, cancel := s.Brief(ctx)
	defer cancel()
	v, err := s.Sessions.Turn(brief, c.Workspace.ID, rd.Turn) // before its rows, or an end in between is missed
	if err != nil {
		return nil, "", err
	}
	state = session.State(v.Turn.State)
	rows, ended, err := s.decodeStored(ctx, c, rd)
	if errors.Is(err, eventlog.ErrGone) || err == nil && !ended && v.Turn.EndSeq != nil {
		if rows, err = outcomeRows(v), nil; rows == nil {
			err = ErrNoTurn
		}
	}
	return rows, state, err
}

// decodeStored returns the stored rows; ended reports that the reading ends with them.
func (s *Server) decodeStored(ctx context.Context, c Caller, rd Reading) (rows []Row, ended bool, err error) {
	dec := s.newRowDecoder(c, rd)
	for evs, err := range s.EventLog.After(ctx, rd.From) {
		if err != nil {
			return nil, false, err
		}
		evs, done := CutAtDone(evs, rd.Turn)
		more, err := dec.decodeRows(ctx, evs)
		if err != nil {
			return nil, false, err
		}
		if rows = append(rows, more...); done || dec.ended {
			return rows, true, nil
		}
	}
	return rows, false, nil
}

// outcomeRows returns the outcome of a turn as rows, nil if it has none.
func outcomeRows(v session.View) (rows []Row) {
	if v.Answer.Content != nil && *v.Answer.Content != "" {
		rows = append(rows, Row{Body: event.Text{Text: *v.Answer.Content}})
	}
	if v.Answer.StructuredResult != nil {
		rows = append(rows, Row{Body: event.Structured{Result: v.Answer.StructuredResult}})
	}
	if v.Turn.Error != nil && !v.Answer.Erased {
		rows = append(rows, Row{Body: event.Error{Code: event.Code(*v.Turn.Error), Message: v.Answer.Failure}})
	}
	if rows == nil {
		return nil
	}
	var used event.Usage
	_ = json.Unmarshal(v.Answer.Usage, &used) // encoded from the same type; nil: none
	rows = append(rows, Row{Body: event.Reply{Cut: used.Truncated, Usage: used}}, Row{Body: event.Done{}})
	return rows
}
