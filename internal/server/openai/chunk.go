package openai

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/filestore"
)

// About is the common data of all chunks of an answer.
type About struct {
	ID         string
	Model      string
	Created    int64
	Session    uuid.UUID
	Usage      bool                 // the stream ends with the usage
	Structured bool                 // the content is only JSON: other text is sent as a refusal
	Rejected   []filestore.Rejected // files that the agent does not have
	Note       string               // text before everything else
	Barred     bool                 // the caller may not answer a request for a secret
	Base       string               // base address of links
}

// chunk is a piece of a streamed answer.
type chunk struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Model   string    `json:"model"`
	Choices []choice  `json:"choices"`
	Usage   any       `json:"usage,omitempty"` // a *usage: null in all chunks but the last, if requested
	Session uuid.UUID `json:"session_id"`      // an extension
}

type choice struct {
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Role      string  `json:"role,omitempty"`
	Content   *string `json:"content,omitempty"`
	Refusal   *string `json:"refusal,omitempty"`
	Reasoning string  `json:"reasoning_content,omitempty"` // the agent's activity, in the field of reasoning models
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// completion is a complete answer.
type completion struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Model   string    `json:"model"`
	Choices [1]whole  `json:"choices"`
	Usage   usage     `json:"usage"`
	Session uuid.UUID `json:"session_id"`
}

type whole struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	LogProbs     *string `json:"logprobs"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"` // nil: a refusal instead
	Refusal   *string `json:"refusal"`
	Reasoning string  `json:"reasoning_content,omitempty"`
}

// failure is OpenAI's error format, which is also that of the envelope.
type failure struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Message string     `json:"message"`
	Type    string     `json:"type"`
	Param   *string    `json:"param"`
	Code    event.Code `json:"code"`
}

func failed(e event.Error) failure {
	return failure{errorBody{Message: e.Message, Type: "api_error", Code: e.Code}}
}

// statusOf returns the HTTP status of a turn that failed. OpenAI's clients and the AI SDK retry a
// request on 408, 409, 429 and every 5xx, and each retry would be another turn with all its tools.
// So the failure is a 503 only if the provider was overloaded before the turn called any tool.
func statusOf(c event.Code, acted bool) int {
	if c == event.ModelOverloaded && !acted {
		return http.StatusServiceUnavailable
	}
	return http.StatusUnprocessableEntity
}
