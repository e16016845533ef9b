package aisdk

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/turn"
)

// findChat finds the session of the chat in the path; ok is false if there is none yet.
func (s *api) findChat(r *server.Request) (id uuid.UUID, ok bool, err error) {
	chat := r.PathValue("chatId")
	if !utf8.ValidString(chat) || strings.ContainsRune(chat, 0) || len(chat) > request.MaxCallerID {
		return id, false, fault.Invalid(fault.Violation{Param: "/chatId", Rule: "format",
			Message: "The id of a chat is text in UTF-8 of at most 255 bytes."})
	}
	return s.CallerSession(r.Context(), r.Caller, chat)
}

// resumeStream streams the turn in progress again, from its beginning.
func (s *api) resumeStream(w http.ResponseWriter, r *server.Request) error {
	release, err := s.HoldStream(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	id, ok, err := s.findChat(r)
	if err != nil {
		return err
	}
	var p server.TurnProgress
	if ok {
		if p, ok, err = s.CurrentTurn(r.Context(), r.Caller, id); err != nil {
			return err
		}
	}
	if !ok { // also for a new chat: the client tries to resume before the first message
		setStreamHeader(w.Header())
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.streamReading(w, r, p.Reading)
}

// cancelTurn cancels the turn in progress. Closing its stream would not, and the page knows only
// this name for the chat.
func (s *api) cancelTurn(w http.ResponseWriter, r *server.Request) error {
	id, ok, err := s.findChat(r)
	if err != nil {
		return err
	}
	var c turn.Canceled
	if ok {
		ctx, cancel := s.Brief(r.Context())
		defer cancel()
		if c, err = s.Turns.Cancel(ctx, r.Caller.Workspace.ID, id); err != nil {
			return err
		}
	}
	return server.WriteData(w, http.StatusOK, struct {
		Canceled bool `json:"canceled"`
	}{c.Canceled})
}
