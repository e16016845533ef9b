package chat

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
)

// AboutStored returns the common data of an answer that is read later. id is that of the answer.
func (s Service) AboutStored(r *server.Request, id string, rd server.Reading) About {
	created := time.Now()
	if rd.Turn.Version() == 7 { // its time is in its id
		created = time.Unix(rd.Turn.Time().UnixTime())
	}
	about := s.aboutReading(r, rd)
	about.ID, about.Model, about.Created = id, r.Caller.Workspace.Slug, created.Unix()
	return about
}

// aboutReading returns the common data of the answer to a reading.
func (s Service) aboutReading(r *server.Request, rd server.Reading) About {
	about := About{Created: time.Now().Unix(), Session: rd.Session(), Turn: rd.Turn, Structured: rd.Structured, Forced: rd.Forced,
		Barred: !r.Caller.Scopes.Allows(apikey.Secret), Base: s.Base(r.Request)}
	if rd.After == uuid.Nil { // from the start of its turn
		about.Rejected = rd.Rejected
	}
	return about
}

// IsCanceled reports whether the turn was canceled.
func (p *Projection) IsCanceled() bool { return p.Error != nil && p.Error.Code == event.Canceled }

// ReadStored returns the rows of a reading that are stored now, and the state of its turn if it has
// not ended, in the words of Responses.
func (s Service) ReadStored(ctx context.Context, r *server.Request, rd server.Reading) (rows []server.Row, unfinished string, err error) {
	rows, state, err := s.StoredRows(ctx, r.Caller, rd)
	unfinished = "in_progress" // or it waits for a tool's server
	if state == session.Queued || state == session.LinedUp {
		unfinished = "queued"
	}
	return rows, unfinished, err
}
