// Package chat serves one message of a client's conversation, for both of OpenAI's APIs: it parses
// the request, applies the words of a user or starts a turn, and projects the rows to the pieces of
// an answer. Each API encodes the pieces.
//
// It promises: it uses only the last user message of a request, in the session that the client
// names; it ignores unknown fields and lists them in a header; no secret passes through here.
package chat

import (
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/words"
	"github.com/parley-server/parley/internal/server/request"
)

// Service responds to messages.
type Service struct{ *server.Server }

// Handler handles a request.
type Handler = func(http.ResponseWriter, *server.Request) error

// Reply is the response to a message.
type Reply = words.Reply

// Encoder is an encoder that can also return the whole answer as one value.
type Encoder interface {
	server.Encoder
	Say(text string) []any
	Completion() (status int, answer any)
}

// Answer responds to a request with the encoder that encode returns.
func (s Service) Answer(w http.ResponseWriter, r *server.Request, in *Incoming, encode func(About, Reply) Encoder) error {
	q, err := s.parseRequest(r, in)
	if err != nil {
		return err
	}
	if isOwnTask(r.Header, q.text) {
		return fault.New(fault.InvalidRequestBody, "This is a task of Open WebUI's own, a title or the like, and no message for the agent. Set "+
			"another task model in its settings.")
	}
	release, err := s.HoldStream(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	request.ReportIgnored(w, q.ignored)
	rd, err := s.findReply(w, r, q, in.raw)
	if err != nil {
		return explainBusy(w, err)
	}
	rd.Tools = rd.Tools || len(q.Tools) > 0
	if rd.Resent {
		request.ReportIgnored(w, append(q.ignored, "earlier messages"))
	}
	about := s.aboutReading(r, rd.Reading)
	about.Model, about.Usage, about.Note = q.model, q.usage, rd.Note
	if rd.Said != "" {
		about.Rejected = nil
	}
	t := encode(about, rd)
	if queued, ok := t.(interface{ Queued() any }); ok && in.Background && !q.stream && rd.Said == "" {
		return server.WriteJSON(w, http.StatusOK, queued.Queued())
	}
	switch {
	case rd.Said != "" && q.stream:
		return s.WriteFrames(w, append(t.Begin(), t.Say(rd.Said)...))
	case q.stream:
		if err := s.StreamReading(w, r, rd.Reading, t); err != nil {
			return err
		}
		s.recordDelivery(r, rd)
		return nil
	case rd.Said != "":
		t.Begin()
		t.Say(rd.Said)
	default:
		if err := s.collectRows(r, q, rd.Reading, t); err != nil {
			if _, ok := retryCount(r); ok && q.namesChat() || q.IdempotencyKey != "" {
				w.Header().Set("X-Should-Retry", "true")
			} else { // a retry would start a second turn
				forbidRetry(w)
			}
			return err
		}
	}
	status, answer := t.Completion()
	switch status {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", overloadedPause)
	default:
		forbidRetry(w)
	}
	if err := server.WriteJSON(w, status, answer); err != nil {
		return err
	}
	if http.NewResponseController(w).Flush() == nil {
		s.recordDelivery(r, rd)
	}
	return nil
}

// overloadedPause is how many seconds a client should wait before it retries with an overloaded
// provider.
const overloadedPause = "5"

// recordDelivery records that a reply was written completely. A repeated decision word is not a
// repeated message.
func (s Service) recordDelivery(r *server.Request, rd Reply) {
	if !rd.Spoken {
		s.MarkDelivered(r, rd.Reading)
	}
}
