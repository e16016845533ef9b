// Package responses serves OpenAI's Responses API: a request is a completion in another format,
// which continues the session of the response that it names.
package responses

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/request"
)

// understood are the fields of a request that have a meaning here.
var understood = []string{"model", "input", "stream", "stream_options", "user", "text", "conversation", "previous_response_id",
	"instructions",
	"tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "max_output_tokens", "reasoning", "background"}

const idPrefix = "resp_"

// Handler returns the handler.
func Handler(s chat.Service) chat.Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		body, raw, err := request.ReadChat(w, r.Request)
		if err != nil {
			return err
		}
		in := incoming{chat.Receive(body, raw, understood)}
		thread := in.parseThread()
		if !in.toCompletion(r) {
			return in.Err()
		}
		if thread.Previous != "" && in.Err() == nil {
			session, err := previousSession(s, r, thread.Previous)
			if err != nil {
				return err
			}
			in.Given["session_id"] = request.QuoteText(session.String())
		}
		if raw, ok := in.Given["background"]; ok {
			in.Background = in.Boolean("/background", raw)
		}
		return s.Answer(w, r, in.Incoming, func(a chat.About, rd chat.Reply) chat.Encoder {
			a.ID = responseID(rd)
			thread.Metadata, thread.Tools, thread.ToolChoice = in.Given["metadata"], in.Given["tools"], in.Given["tool_choice"]
			return NewEncoder(a, thread)
		})
	}
}

// incoming is a request, which is translated to the fields of a completion.
type incoming struct{ *chat.Incoming }

// previousSession returns the session of a response.
func previousSession(s chat.Service, r *server.Request, name string) (uuid.UUID, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	id, _, ok := parseID(name)
	if !ok {
		return uuid.Nil, noResponse("previous_response_id")
	}
	in, ok, err := s.Sessions.SessionOf(ctx, r.Caller.Workspace.ID, id)
	if err != nil || !ok {
		return uuid.Nil, cmp.Or(err, noResponse("previous_response_id"))
	}
	o, err := s.TurnOptions(ctx, r.Caller, id)
	if err == nil && o.Deleted {
		err = noResponse("previous_response_id")
	}
	return in, err
}

// parseThread parses the response or conversation that a response follows.
func (in incoming) parseThread() (thread Thread) {
	previous, follows := in.Given["previous_response_id"]
	if follows {
		thread.Previous = in.Word("/previous_response_id", previous, 200)
	}
	name, named := in.Given["conversation"]
	if !named {
		return thread
	}
	if follows {
		in.Add(fault.Violation{Param: "/conversation", Rule: "exactly_one",
			Message: "Send either previous_response_id or conversation, not both."})
	}
	if name[0] == '{' {
		name = request.OrEmptyText(request.ByName(request.Members(name))["id"])
	}
	in.Given["conversation"] = name
	thread.Conversation = in.Word("/conversation", name, request.MaxCallerID)
	return thread
}

// toCompletion converts a Responses request to a completion; ok is false if it has no input.
func (in incoming) toCompletion(r *server.Request) (ok bool) {
	input := in.Given["input"]
	if len(input) == 0 || input[0] != '"' && input[0] != '[' {
		in.Add(fault.Violation{Param: "/input", Rule: "type", Message: "input must be a text, or an array of messages, each with a role.",
			Expected: "string"})
		return false
	}
	in.Keep(understood)
	delete(in.Given, "input") // our own messages have another field of this name
	in.Given["messages"], r.Names["messages"] = input, "input"
	if len(input) > 0 && input[0] == '"' {
		in.Given["messages"], _ = json.Marshal([]map[string]any{{"role": "user", "content": input}})
		r.Names["command"] = "input"
	}
	if effort, ok := in.Member("reasoning", "effort"); ok {
		in.Given["reasoning_effort"], r.Names["reasoning_effort"] = effort, "reasoning/effort"
	}
	format, ok := in.Member("text", "format")
	if !ok || !in.Object("/text/format", format) {
		return true
	}
	about := request.ByName(request.Members(format))
	in.Given["response_format"], _ = json.Marshal(map[string]any{"type": about["type"],
		"json_schema": map[string]any{"schema": about["schema"]}})
	r.Names["response_format"], r.Names["response_schema"] = "text/format", "text/format/schema"
	return true
}
