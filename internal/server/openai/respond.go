package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
)

// respond handles a request of the Responses API. It is a completion in another format, and
// continues the session of the response that it names.
func (s *api) respond(w http.ResponseWriter, r *server.Request) error {
	body, raw, err := request.ReadChat(w, r.Request)
	if err != nil {
		return err
	}
	in := receive(body, raw, respondable)
	in.shape = "text.format"
	thread := in.follow()
	if !in.translate(r) {
		return in.Err()
	}
	if thread.Previous != "" && in.Err() == nil {
		session, err := s.previous(r, thread.Previous)
		if err != nil {
			return err
		}
		in.given["session_id"] = request.QuoteText(session.String())
	}
	return s.answer(w, r, in, func(a About, rd reply) telling {
		a.ID = responsePrefix + rd.Turn.String()
		if rd.spoken { // not the response that started the turn
			a.ID += "_" + uuid.Must(uuid.NewV7()).String()
		}
		return NewResponding(a, thread)
	})
}

// respondable is understood for the Responses API.
var respondable = []string{"model", "input", "stream", "stream_options", "user", "text", "conversation", "previous_response_id"}

const responsePrefix = "resp_"

// previous returns the session of a response, whose id begins with its turn.
func (s *api) previous(r *server.Request, name string) (uuid.UUID, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	turn, _, _ := strings.Cut(strings.TrimPrefix(name, responsePrefix), "_")
	if turn, err := uuid.Parse(turn); err == nil {
		if session, ok, err := s.Sessions.SessionOf(ctx, r.Caller.Workspace.ID, turn); ok || err != nil {
			return session, err
		}
	}
	return uuid.Nil, &fault.Error{Code: fault.SessionNotFound, Param: "previous_response_id", Message: "The response does not exist in this workspace."}
}

// follow parses the response or conversation that a response follows.
func (in *incoming) follow() (thread Thread) {
	previous, follows := in.given["previous_response_id"]
	if follows {
		thread.Previous = in.Word("/previous_response_id", previous, 200)
	}
	name, named := in.given["conversation"]
	if !named {
		return thread
	}
	if follows {
		in.Add(fault.Violation{Param: "/conversation", Rule: "exactly_one", Message: "Send either previous_response_id or conversation, not both."})
	}
	if name[0] == '{' {
		name = request.OrEmptyText(request.ByName(request.Members(name))["id"])
	}
	in.given["conversation"] = name
	thread.Conversation = in.Word("/conversation", name, request.MaxCallerID)
	return thread
}

// translate converts a Responses request to a completion; ok is false if it has no input.
func (in *incoming) translate(r *server.Request) (ok bool) {
	input := in.given["input"]
	if len(input) == 0 || input[0] != '"' && input[0] != '[' {
		in.Add(fault.Violation{Param: "/input", Rule: "type", Message: "input must be a text, or an array of messages, each with a role.", Expected: "string"})
		return false
	}
	delete(in.given, "input") // our own messages have another field of this name
	in.given["messages"], r.Names["messages"] = input, "input"
	if len(input) > 0 && input[0] == '"' {
		in.given["messages"], _ = json.Marshal([]map[string]any{{"role": "user", "content": input}})
		r.Names["command"] = "input"
	}
	delete(in.given, "response_format")
	text, ok := in.given["text"]
	if !ok || !in.Object("/text", text) {
		return true
	}
	given := request.ByName(request.Members(text))
	if _, ok := given["verbosity"]; ok {
		in.ignored = append(in.ignored, "text.verbosity")
	}
	format, ok := given["format"]
	if !ok || !in.Object("/text/format", format) {
		return true
	}
	about := request.ByName(request.Members(format))
	in.given["response_format"], _ = json.Marshal(map[string]any{"type": about["type"], "json_schema": map[string]any{"schema": about["schema"]}})
	r.Names["response_format"], r.Names["response_schema"] = "text/format", "text/format/schema"
	return true
}
