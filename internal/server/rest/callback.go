package rest

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/store/callback"
)

// callbackID returns the callback in the path. A malformed id is not found.
func callbackID(r *call.Request) (uuid.UUID, error) {
	id, ok := request.ID(r.PathValue("callbackId"))
	if !ok {
		return uuid.Nil, fault.New(fault.CallbackNotFound, "No such callback in this workspace: an id looks like %s.", uuid.Nil)
	}
	return id, nil
}

// listCallbacks returns one page of the deliveries of the workspace's callbacks.
func (s *api) listCallbacks(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.Query()
	limit, cursor, status := p.Limit(20), p.Cursor(), p.Enum("status", callback.Statuses...)
	if err := p.Err(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Callbacks.List(ctx, r.Caller.Workspace.ID, status, cursor, limit)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}

// getCallback returns a callback, its reports and the attempts at them.
func (s *api) getCallback(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	id, err := callbackID(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	c, err := s.Callbacks.Get(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, c)
}

// redelivery is the response to a redelivery call.
type redelivery struct {
	CallbackID   uuid.UUID  `json:"callback_id"`
	Redelivering bool       `json:"redelivering"`
	WebhookID    *uuid.UUID `json:"webhook_id,omitempty"`
	Reason       string     `json:"reason,omitempty"`
}

// redeliverCallback queues the newest delivery again. It also succeeds if there is none.
func (s *api) redeliverCallback(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	id, err := callbackID(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	delivery, ok, err := s.Turns.Redeliver(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return err
	}
	if !ok {
		return server.WriteData(w, http.StatusOK, redelivery{CallbackID: id, Reason: "nothing_reported"})
	}
	return server.WriteData(w, http.StatusOK, redelivery{CallbackID: id, Redelivering: true, WebhookID: &delivery})
}
