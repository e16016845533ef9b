package openaiapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// request is what a client asks for, as far as it is understood.
type request struct {
	turn.Request
	model      string
	text       string
	stream     bool
	usage      bool // as the last chunk of a stream
	structured bool // the content is JSON, and nothing else
	ignored    []string
}

// The headers by which clients name a chat, the surest first. The field "user" comes last: to
// some clients it is a person, who has many chats.
var chatHeaders = []string{"X-Openwebui-Chat-Id", "X-Session-Id"}

// harmless are fields that change nothing that a caller could miss.
var harmless = []string{"model", "messages", "stream", "stream_options", "user", "n", "response_format", "metadata", "store", "safety_identifier", "prompt_cache_key",
	"previous_response_id", "conversation", "text"}

// parse reads a request after what was found wrong before.
func (s *server) parse(r *dialect.Request, c wire.Checks, given map[string]json.RawMessage) (request, error) {
	q := request{model: c.Word("/model", orEmpty(given["model"]), 200)}
	list := dialect.Messages(&c, given["messages"])
	if i := dialect.Asked(&c, list); i >= 0 {
		at := fmt.Sprintf("messages/%d/content", i)
		q.text = dialect.Text(&c, "/"+at, list[i].Content)
		r.Names["command"] = at
	}
	if raw, ok := given["stream"]; ok {
		q.stream = c.Boolean("/stream", raw)
	}
	if raw, ok := given["stream_options"]; ok && c.Object("/stream_options", raw) {
		if raw, ok := dialect.Given(wire.Members(raw))["include_usage"]; ok {
			q.usage = c.Boolean("/stream_options/include_usage", raw)
		}
	}
	if raw, ok := given["n"]; ok {
		c.Integer("/n", raw, 1, 1)
	}
	q.ignored = ignored(given, list)
	q.format(&c, given)
	chat(&c, r, given)
	if err := c.Err(); err != nil {
		return q, err
	}
	if err := s.resolve(r, q, given); err != nil {
		return q, err
	}
	q.Request = dialect.Compose(&c, q.text, given)
	q.IdempotencyKey = c.Once(r.Header.Values("Idempotency-Key"))
	return q, c.Err()
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// chat puts the chat's name where messages have it.
func chat(c *wire.Checks, r *dialect.Request, given map[string]json.RawMessage) {
	delete(given, "caller_id")
	if user, ok := given["user"]; ok && string(user) != `""` {
		given["caller_id"], r.Names["caller_id"] = user, "user"
	}
	for _, name := range slices.Backward(chatHeaders) {
		value := r.Header.Get(name)
		if value == "" {
			continue
		}
		if !wire.Printable(value) {
			c.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " must be printable ASCII characters."})
		}
		given["caller_id"], r.Names["caller_id"] = dialect.Quote(value), name
	}
}

// format reads what the answer is to look like.
func (q *request) format(c *wire.Checks, given map[string]json.RawMessage) {
	raw, ok := given["response_format"]
	if !ok || !c.Object("/response_format", raw) {
		_, q.structured = given["response_schema"]
		return
	}
	var f struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	switch err := json.Unmarshal(raw, &f); {
	case err != nil:
		c.Type("/response_format", "object")
	case f.Type == "json_schema" && f.Schema.Schema == nil:
		c.Add(fault.Violation{Param: "/response_format/json_schema/schema", Rule: "required", Message: "response_format has no json_schema.schema."})
	case f.Type == "json_schema":
		given["response_schema"], q.structured = f.Schema.Schema, true
	case f.Type != "text":
		q.ignored = append(q.ignored, "response_format "+f.Type)
	}
}

// ignored lists what the client says that has no meaning here.
func ignored(given map[string]json.RawMessage, list []dialect.Message) (names []string) {
	for name := range given {
		if !slices.Contains(harmless, name) && !slices.Contains(dialect.Extensions, name) && wire.Printable(name) {
			names = append(names, wire.Short(name))
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), 20)]
	for _, m := range list {
		if m.Role == "system" || m.Role == "developer" {
			return append(names, "system messages")
		}
	}
	return names
}

// resolve finds out what the model stands for.
func (s *server) resolve(r *dialect.Request, q request, given map[string]json.RawMessage) error {
	slug, name, calls := strings.Cut(q.model, "/")
	if slug != r.Caller.Workspace.Slug {
		return noModel(q.model, r.Caller.Workspace)
	}
	if !calls {
		return nil
	}
	ctx, cancel := s.Door.Brief(context.WithoutCancel(r.Context()))
	defer cancel()
	k, err := s.Skills.Active(ctx, r.Caller.Workspace.ID, name)
	if err == nil {
		invoke(k, q.text, given)
	}
	return err
}
