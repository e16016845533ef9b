package chat

import (
	"time"

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
	return About{ID: id, Model: r.Caller.Workspace.Slug, Created: created.Unix(), Session: rd.Session(), Turn: rd.Turn,
		Structured: rd.Structured, Forced: rd.Forced, Rejected: rd.Rejected, Barred: !r.Caller.Scopes.Allows(apikey.Secret), Base: s.Base(r.Request)}
}

// IsCanceled reports whether the turn was canceled.
func (p *Projection) IsCanceled() bool { return p.Error != nil && p.Error.Code == event.Canceled }

// UnfinishedState returns the state of a turn that has no answer yet, in the words of Responses; "":
// it has ended, or waits for its client.
func (s Service) UnfinishedState(r *server.Request, rd server.Reading) (string, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	v, err := s.Sessions.Turn(ctx, r.Caller.Workspace.ID, rd.Turn)
	if err != nil {
		return "", err
	}
	switch v.Turn.State {
	case session.Queued, session.LinedUp:
		return "queued", nil
	case session.Running: // or a tool's server is
		return "in_progress", nil
	}
	return "", nil
}
