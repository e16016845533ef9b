package server

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/turn"
)

// Row is one row of a turn, decoded.
type Row struct {
	Seq  int64
	At   time.Time
	Body event.Body      // can be of an internal kind; nil for a kind of a newer release
	Data json.RawMessage // encoded Body
	// Seen reports that the reader has this row from an earlier stream. The encoder needs it for
	// the rows after it.
	Seen bool
	// Pending reports that this question is not answered yet. It is the last row.
	Pending bool
}

// Reading describes how a client reads a turn: from its first row to its end, or to a pending
// question.
type Reading struct {
	Turn uuid.UUID
	From eventlog.From
	// After is a question that the reader received in an earlier stream; uuid.Nil: none. The rows
	// up to it are Seen.
	After uuid.UUID
	// Again repeats the question After if it is pending; otherwise the reading waits for its
	// answer.
	Again bool
	// Through keeps the reading open when a secret or a connection is requested.
	Through bool
	// Tools ends the reading with calls of the caller's own tools. Otherwise it stays open: another
	// client posts their results.
	Tools bool
	// Stored repeats a reading that has ended with calls of the caller's own tools, which may have
	// results now.
	Stored bool
	// Then is read when the turn has ended; nil: nothing.
	Then *Reading

	Own        map[string]bool      // names of the tools that the message brought along
	Structured bool                 // the turn's answer is JSON in a schema
	Forced     *turn.ForcedTool     // the tool of the caller whose input that JSON is; nil: none
	Resent     bool                 // messages that the caller supplied were not stored: the session has its own
	Rejected   []filestore.Rejected // files of its message that were rejected

	starter *string // the key that started it
}

// Session returns the session whose turn is read.
func (rd Reading) Session() uuid.UUID { return rd.From.Session }

// TurnRows yields the rows of a reading as they are committed. It ends with eventlog.ErrGone if
// rows are missing.
func (s *Server) TurnRows(ctx context.Context, c Caller, rd Reading) iter.Seq2[[]Row, error] {
	return func(yield func([]Row, error) bool) {
		for next := &rd; next != nil && s.readTurn(ctx, c, *next, yield); {
			next = next.Then
		}
	}
}

// readTurn yields the rows of one turn, and reports whether it was read to its end.
func (s *Server) readTurn(ctx context.Context, c Caller, rd Reading, yield func([]Row, error) bool) bool {
	dec := s.newRowDecoder(c, rd)
	for evs, err := range s.Events(ctx, rd.From, rd.Turn) {
		var rows []Row
		if err == nil {
			rows, err = dec.decodeRows(ctx, evs)
		}
		if err != nil {
			yield(nil, err)
			return false
		}
		if len(rows) > 0 && !yield(rows, nil) || dec.ended {
			return false
		}
	}
	return true
}

// rowDecoder decodes the events of a reading, in order.
type rowDecoder struct {
	*Server
	caller Caller
	rd     Reading
	seen   bool // the reader has the next rows
	ended  bool // the reading ends with a pending question
}

func (s *Server) newRowDecoder(c Caller, rd Reading) *rowDecoder {
	return &rowDecoder{Server: s, caller: c, rd: rd, seen: rd.After != uuid.Nil}
}

// decodeRows decodes events up to the end of the reading.
func (d *rowDecoder) decodeRows(ctx context.Context, evs []event.Event) ([]Row, error) {
	rows := make([]Row, 0, len(evs))
	for i := range evs {
		if evs[i].Turn != d.rd.Turn { // an event of a queued turn
			continue
		}
		row := Row{Seq: evs[i].Seq, At: evs[i].At, Data: evs[i].Data, Seen: d.seen}
		var err error
		if row.Body, err = evs[i].Body(); err != nil {
			return nil, fmt.Errorf("read row %d: %w", evs[i].Seq, err)
		}
		if ask, ok := row.Body.(event.Question); ok {
			if row.Pending, err = d.endsAtQuestion(ctx, d.caller, d.rd, ask, d.seen); err != nil {
				return nil, err
			}
			row.Seen = d.seen && !row.Pending
			id, _ := ask.Wait()
			d.seen = d.seen && id != d.rd.After
		}
		if rows = append(rows, row); row.Pending {
			d.ended = true
			return rows, nil
		}
	}
	return rows, nil
}

// endsAtQuestion reports whether a reading ends with a question: it is pending, and the reader has
// not received it before.
func (s *Server) endsAtQuestion(ctx context.Context, c Caller, rd Reading, ask event.Question, seen bool) (bool, error) {
	id, kind := ask.Wait()
	switch {
	case seen && !(rd.Again && id == rd.After),
		(kind == event.InputSecret || kind == event.InputConnect) && rd.Through, kind == event.InputTool && !rd.Tools, kind == event.InputResult:
		return false, nil
	case kind == event.InputTool && rd.Stored && !seen:
		return true, nil
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	a, err := s.Sessions.Approval(ctx, c.Workspace.ID, id)
	return err == nil && a.Status == "pending", err
}
