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

// readTime limits how long a stored answer may take to read.
const readTime = 10 * time.Second

// responseID returns the id of a response: that of its turn. The id of the rest of a turn continues
// with the question after which it begins, and every answer but the first ends with an id of its own.
func responseID(rd chat.Reply) string {
	parts := []string{rd.Turn.String()}
	if rd.Spoken && rd.After != uuid.Nil && rd.Said == "" {
		parts = append(parts, rd.After.String())
	}
	if rd.Spoken {
		parts = append(parts, uuid.Must(uuid.NewV7()).String())
	}
	return idPrefix + strings.Join(parts, "_")
}

// parseID returns the turn of a response, and the question after which it begins.
func parseID(name string) (turn, after uuid.UUID, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(name, idPrefix), "_", 3)
	if turn, ok = request.ID(parts[0]); len(parts) == 3 {
		after, _ = request.ID(parts[1])
	}
	return turn, after, ok
}

func noResponse(param string) error {
	return &fault.Error{Code: fault.SessionNotFound, Param: param, Message: "The response does not exist in this workspace."}
}

// storedHandler returns a handler of a response by its id.
func storedHandler(s chat.Service, do func(http.ResponseWriter, *server.Request, string, server.Reading) error) chat.Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		name := r.PathValue("responseId")
		rd, err := findStored(s, r, name)
		if err == nil {
			err = do(w, r, name, rd)
		}
		if errors.Is(err, server.ErrNoTurn) {
			err = noResponse("response_id")
		}
		return err
	}
}

// Retrieve returns the handler that returns a response by its id.
func Retrieve(s chat.Service) chat.Handler {
	return storedHandler(s, func(w http.ResponseWriter, r *server.Request, name string, rd server.Reading) error {
		if r.URL.Query().Get("stream") != "true" {
			return writeStored(s, w, r, name, rd)
		}
		release, err := s.HoldStream(r.Context(), r.Caller)
		if err != nil {
			return err
		}
		defer release()
		enc, frames, _, err := readStored(s, r, name, rd)
		if err != nil {
			return err
		}
		if enc.Finish == "" && enc.Error == nil {
			return s.StreamReading(w, r, rd, newStored(s, r, name, rd))
		}
		return s.WriteFrames(w, frames)
	})
}

// Cancel returns the handler that ends the turn of a response, running or queued, and only that turn.
func Cancel(s chat.Service) chat.Handler {
	return storedHandler(s, func(w http.ResponseWriter, r *server.Request, name string, rd server.Reading) error {
		ctx, stop := s.Brief(context.WithoutCancel(r.Context()))
		defer stop()
		if _, err := s.Turns.CancelTurn(ctx, r.Caller.Workspace.ID, rd.Turn); err != nil {
			return err
		}
		return writeStored(s, w, r, name, rd)
	})
}

// Delete returns the handler that deletes the responses of a turn. Their ids become unknown.
func Delete(s chat.Service) chat.Handler {
	return storedHandler(s, func(w http.ResponseWriter, r *server.Request, name string, rd server.Reading) error {
		ctx, stop := s.Brief(context.WithoutCancel(r.Context()))
		defer stop()
		if err := s.Turns.DeleteAnswer(ctx, rd.Session(), rd.Turn); err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, map[string]any{"id": name, "object": "response", "deleted": true})
	})
}

// findStored returns a reading of a response, or server.ErrNoTurn.
func findStored(s chat.Service, r *server.Request, name string) (rd server.Reading, err error) {
	id, after, ok := parseID(name)
	if !ok {
		return rd, server.ErrNoTurn
	}
	if rd, err = s.FindTurn(r.Context(), r.Caller, id); err != nil {
		return rd, err
	}
	o, err := s.TurnOptions(r.Context(), r.Caller, id)
	if err == nil && o.Deleted {
		err = server.ErrNoTurn
	}
	if rd.Tools, rd.Stored = true, true; err != nil || after == uuid.Nil {
		return rd, err
	}
	asked, err := s.SessionApproval(r.Context(), r.Caller, rd.Session(), after)
	if f := fault.From(err); f != nil && f.Code == fault.ApprovalNotFound || err == nil && asked.TurnID != rd.Turn {
		err = server.ErrNoTurn
	}
	rd.After, rd.Again = after, true
	return rd, err
}

func newStored(s chat.Service, r *server.Request, name string, rd server.Reading) *Encoder {
	return NewEncoder(s.AboutStored(r, name, rd), Thread{})
}

// readStored reads a response as it is now, and the frames that its stream has sent so far.
func readStored(s chat.Service, r *server.Request, name string, rd server.Reading) (enc *Encoder, frames []any, unfinished string,
	err error) {
	ctx, stop := context.WithTimeout(r.Context(), readTime)
	defer stop()
	rows, unfinished, err := s.ReadStored(ctx, r, rd)
	enc = newStored(s, r, name, rd)
	frames = enc.Begin()
	for _, row := range rows {
		frames = append(frames, enc.Row(row)...)
	}
	return enc, frames, unfinished, err
}

// writeStored responds with a response as it is now.
func writeStored(s chat.Service, w http.ResponseWriter, r *server.Request, name string, rd server.Reading) error {
	enc, _, unfinished, err := readStored(s, r, name, rd)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, enc.responseObject(enc.storedStatus(unfinished)))
}

// storedStatus returns the status of a response. unfinished is that of one without an end.
func (p *Encoder) storedStatus(unfinished string) string {
	switch {
	case p.Finish != "":
		return p.finalStatus()
	case p.IsCanceled():
		return "cancelled"
	case p.Error != nil:
		return "failed"
	case len(p.outputItems(unfinished)) > 0:
		return "in_progress"
	}
	return unfinished
}
