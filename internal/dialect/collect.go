package dialect

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
)

// Collect gives a projection what is read, for an answer that comes in one piece.
func (d *Desk) Collect(r *Request, rd Reading, p Projection) error {
	ctx, stop := d.Keys.While(r.Context(), r.Caller.Key)
	defer stop()
	p.Begin()
	for rows, err := range d.Rows(ctx, r.Caller, rd) {
		switch {
		case errors.Is(err, apikey.ErrDead):
			return apikey.Invalid()
		case errors.Is(err, session.ErrGone):
			p.Fail(gone)
			return nil
		case err != nil:
			return d.accepted(r, rd, err)
		}
		for _, row := range rows {
			p.Row(row)
		}
	}
	return nil
}

// accepted says of a call that cannot be answered any more that its message was stored: who
// only hears "try again" sends it twice.
func (d *Desk) accepted(r *Request, rd Reading, err error) error {
	switch {
	case errors.Is(err, context.Canceled) || r.Context().Err() != nil: // the caller is gone, or the service is stopping
	case door.Unavailable(err):
		d.Log.WarnContext(r.Context(), "a call lost the database after its message was stored", "session", rd.Session(), "turn", rd.Turn, "err", err)
	default:
		return fmt.Errorf("wait for the turn: %w", err)
	}
	t := &session.ActiveTurn{TurnID: rd.Turn, SessionID: rd.Session(), Status: session.Running, LastSeq: rd.From.Seq}
	door.Link(d.Door.Base(r.Request), r.Caller.Workspace, t)
	return &fault.Error{Code: fault.Unavailable, Detail: fault.Detail{Turn: t}, Message: fmt.Sprintf(
		"The message was accepted and its turn goes on in session %s, but this server cannot wait for it. Read the answer at %s. Do not send it again.",
		rd.Session(), t.EventsURL)}
}
