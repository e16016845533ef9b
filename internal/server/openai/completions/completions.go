// Package completions encodes answers for OpenAI's Chat Completions API and for the older API for
// completions of a text, as a stream of chunks or as one object.
package completions

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/request"
)

// understood are the fields of a completion that have a meaning here.
var understood = []string{"model", "messages", "stream", "stream_options", "user", "n", "response_format",
	"tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed",
	"reasoning_effort"}

// Handler returns the handler, which responds to the last message of a conversation.
func Handler(s chat.Service) chat.Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		body, raw, err := request.ReadChat(w, r.Request)
		if err != nil {
			return err
		}
		in := chat.Receive(body, raw, understood)
		in.Keep(append([]string{"function_call"}, understood...)) // which is rejected
		return s.Answer(w, r, in, func(a chat.About, rd chat.Reply) chat.Encoder {
			a.ID = "chatcmpl-" + rd.Turn.String()
			return NewEncoder(a)
		})
	}
}
