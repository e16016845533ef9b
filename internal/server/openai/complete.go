package openai

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
)

// complete responds to the last message of a conversation.
func (s *api) complete(w http.ResponseWriter, r *server.Request) error {
	body, raw, err := request.ReadChat(w, r.Request)
	if err != nil {
		return err
	}
	in := receive(body, raw, understood)
	in.shape = "response_format"
	delete(in.given, "conversation") // only responses have this field
	return s.answer(w, r, in, func(a About, _ reply) telling { return NewEncoder(a) })
}

// understood are the fields of a completion that have a meaning here.
var understood = []string{"model", "messages", "stream", "stream_options", "user", "n", "response_format"}

// telling is an encoder that can also return the whole answer as one value.
type telling interface {
	server.Encoder
	Say(text string) []any
	Completion() (status int, answer any)
}

// answer responds to a request with the encoder that tell returns.
func (s *api) answer(w http.ResponseWriter, r *server.Request, in *incoming, tell func(About, reply) telling) error {
	q, err := s.parse(r, in)
	if err != nil {
		return err
	}
	if chore(r.Header, q.text) {
		return fault.New(fault.InvalidRequestBody, "This is a task of Open WebUI's own, a title or the like, and no message for the agent. Set another task model in its settings.")
	}
	release, err := s.HoldStream(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	request.ReportIgnored(w, q.ignored)
	rd, err := s.reply(w, r, q, in.raw)
	if err != nil {
		return helped(w, err)
	}
	about := About{ID: "chatcmpl-" + rd.Turn.String(), Model: q.model, Created: time.Now().Unix(), Session: rd.Session(),
		Usage: q.usage, Structured: rd.Structured, Note: rd.note, Barred: !r.Caller.Scopes.Allows(apikey.Secret), Base: s.Base(r.Request)}
	if rd.After == uuid.Nil && rd.said == "" { // from the start of its turn
		about.Rejected = rd.Rejected
	}
	t := tell(about, rd)
	switch {
	case rd.said != "" && q.stream:
		return s.WriteFrames(w, append(t.Begin(), t.Say(rd.said)...))
	case q.stream:
		if err := s.StreamReading(w, r, rd.Reading, t); err != nil {
			return err
		}
		s.recordDelivery(r, rd)
		return nil
	case rd.said != "":
		t.Begin()
		t.Say(rd.said)
	default:
		if err := s.collect(r, q, rd.Reading, t); err != nil {
			if _, ok := retries(r); ok && q.named() || q.IdempotencyKey != "" {
				w.Header().Set("X-Should-Retry", "true")
			} else { // a retry would start a second turn
				unrepeated(w)
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
		unrepeated(w)
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

// recordDelivery records that a reply was written completely. A repeated decision word is not a repeated
// message.
func (s *api) recordDelivery(r *server.Request, rd reply) {
	if !rd.spoken {
		s.MarkDelivered(r, rd.Reading)
	}
}
