package aisdk

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// sendMessage handles the last message of a chat: a new one of the user, or the assistant's own
// with answers to its questions.
func (s *api) sendMessage(w http.ResponseWriter, r *server.Request) error {
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	q, err := parseRequest(body, r)
	if err != nil {
		return err
	}
	ignored, err := s.InvokeSkill(r, &q.Request, q.text)
	if err != nil {
		return err
	}
	if ignored {
		q.ignored = append(q.ignored, "messages")
	}
	release, err := s.HoldStream(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	request.ReportIgnored(w, q.ignored)
	var rd server.Reading
	if len(q.answers) > 0 || len(q.results) > 0 {
		rd, err = s.answerQuestions(r, q)
	} else if err = s.CountRequest(r.Context(), w, r.Caller, ratelimit.Messages); err == nil {
		rd, err = s.StartChatTurn(w, r, q.Request, q.sent)
	}
	if err != nil {
		return err
	}
	return s.streamReading(w, r, rd)
}

// streamReading streams a reading. It ends with calls of the client's own tools, whose results come
// with the next request. It stays open while a secret is requested: secrets are not provided here.
func (s *api) streamReading(w http.ResponseWriter, r *server.Request, rd server.Reading) error {
	setStreamHeader(w.Header())
	rd.Through, rd.Tools = true, true
	return s.StreamReading(w, r, rd, NewEncoder(rd, s.Base(r.Request)))
}
