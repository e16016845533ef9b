package openaiapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/wire"
)

// respond answers a request of the Responses API. It is a completion in other words, and goes
// on where the response that it names has ended.
func (s *server) respond(w http.ResponseWriter, r *dialect.Request) error {
	body, raw, err := wire.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	var c wire.Checks
	given := dialect.Given(body)
	translate(&c, given)
	var previous string
	if raw, ok := given["previous_response_id"]; ok {
		previous = c.Word("/previous_response_id", raw, 100)
		if err := c.Err(); err != nil {
			return err
		}
		session, err := s.previous(r, previous)
		if err != nil {
			return err
		}
		given["session_id"] = dialect.Quote(session.String())
	}
	return s.answer(w, r, c, given, raw, func(a About, turn uuid.UUID) telling {
		a.ID = responsePrefix + turn.String()
		return NewResponding(a, previous)
	})
}

const responsePrefix = "resp_"

// previous is the session of a response: a response is a turn.
func (s *server) previous(r *dialect.Request, name string) (uuid.UUID, error) {
	ctx, cancel := s.Door.Brief(r.Context())
	defer cancel()
	if turn, err := uuid.Parse(strings.TrimPrefix(name, responsePrefix)); err == nil {
		if session, ok, err := s.Sessions.SessionOf(ctx, r.Caller.Workspace.ID, turn); ok || err != nil {
			return session, err
		}
	}
	return uuid.Nil, &fault.Error{Code: fault.SessionNotFound, Param: "previous_response_id", Message: "There is no such response in this workspace."}
}

// translate says a request in the words of a completion.
func translate(c *wire.Checks, given map[string]json.RawMessage) {
	input := given["input"]
	delete(given, "input") // which is something else in messages of our own
	given["messages"] = input
	if len(input) > 0 && input[0] == '"' {
		given["messages"], _ = json.Marshal([]map[string]any{{"role": "user", "content": input}})
	}
	if raw, ok := given["conversation"]; ok {
		given["user"] = raw
	}
	raw, ok := given["text"]
	if !ok || !c.Object("/text", raw) {
		return
	}
	var text struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	}
	if json.Unmarshal(raw, &text) != nil {
		c.Type("/text/format", "object")
		return
	}
	if text.Format.Type != "" {
		given["response_format"], _ = json.Marshal(map[string]any{"type": text.Format.Type, "json_schema": map[string]any{"schema": text.Format.Schema}})
	}
}
