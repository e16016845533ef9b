package responses

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/request"
)

// readTime limits how long an ended answer may take to read.
const readTime = 10 * time.Second

// turnID returns the turn of a response, with whose id its own begins.
func turnID(name string) (uuid.UUID, bool) {
	turn, _, _ := strings.Cut(strings.TrimPrefix(name, idPrefix), "_")
	return request.ID(turn)
}

func noResponse() error {
	return &fault.Error{Code: fault.SessionNotFound, Param: "response_id", Message: "The response does not exist in this workspace."}
}

// Retrieve returns the handler that returns a response by its id: the whole answer of its turn.
func Retrieve(s chat.Service) chat.Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		name := r.PathValue("responseId")
		rd, err := find(s, r, name)
		if err != nil {
			return err
		}
		if r.URL.Query().Get("stream") == "true" {
			release, err := s.HoldStream(r.Context(), r.Caller)
			if err != nil {
				return err
			}
			defer release()
			return s.StreamReading(w, r, rd, newStored(s, r, name, rd))
		}
		object, err := readStored(s, r, name, rd)
		if err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, object)
	}
}

// Cancel returns the handler that ends the turn of a response, running or queued, and only that turn.
func Cancel(s chat.Service) chat.Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		name := r.PathValue("responseId")
		rd, err := find(s, r, name)
		if err != nil {
			return err
		}
		ctx, stop := s.Brief(context.WithoutCancel(r.Context()))
		defer stop()
		if _, err := s.Turns.CancelTurn(ctx, r.Caller.Workspace.ID, rd.Turn); err != nil {
			return err
		}
		object, err := readStored(s, r, name, rd)
		if err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, object)
	}
}

// find returns a reading of the turn of a response.
func find(s chat.Service, r *server.Request, name string) (rd server.Reading, err error) {
	id, ok := turnID(name)
	if !ok {
		return rd, noResponse()
	}
	if rd, err = s.FindTurn(r.Context(), r.Caller, id); errors.Is(err, server.ErrNoTurn) {
		err = noResponse()
	}
	rd.Tools = true
	return rd, err
}

func newStored(s chat.Service, r *server.Request, name string, rd server.Reading) *Encoder {
	return NewEncoder(s.AboutStored(r, name, rd), Thread{})
}

// readStored returns the response of a turn as it is now. A turn that runs has no output yet.
func readStored(s chat.Service, r *server.Request, name string, rd server.Reading) (any, error) {
	enc := newStored(s, r, name, rd)
	if state, err := s.UnfinishedState(r, rd); err != nil || state != "" {
		return enc.responseObject(state), err
	}
	ctx, stop := context.WithTimeout(r.Context(), readTime)
	defer stop()
	enc.Begin()
	for rows, err := range s.TurnRows(ctx, r.Caller, rd) {
		if errors.Is(err, context.DeadlineExceeded) { // the turn has continued
			return newStored(s, r, name, rd).responseObject("in_progress"), nil
		}
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			enc.Row(row)
		}
	}
	switch {
	case enc.IsCanceled():
		return enc.responseObject("cancelled"), nil
	case enc.Error != nil && enc.Finish == "":
		return enc.responseObject("failed"), nil
	}
	enc.Shorten()
	return enc.responseObject(enc.finalStatus()), nil
}
