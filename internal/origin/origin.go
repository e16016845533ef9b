// Package origin carries the request behind a change of a turn in the context, so that audits can
// name it and traces can continue it. It decides nothing.
package origin

import (
	"context"
	"encoding/json"
)

// Origin describes a request.
type Origin struct {
	Key       string `json:"key,omitempty"`      // id of the API key or the member; "": an administrator's command
	Protocol  string `json:"protocol,omitempty"` // rest, mcp, a2a, openai, aisdk or agui
	Address   string `json:"address,omitempty"`  // of the client
	RequestID string `json:"request_id,omitempty"`
	// Traceparent is the place of the request in its trace, which the turn continues; "": none.
	Traceparent string `json:"traceparent,omitempty"`
}

type contextKey struct{}

// With returns a context whose changes are recorded as those of a request.
func With(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, contextKey{}, o)
}

// Of returns the origin that a turn has stored; zero if it is not known.
func Of(stored []byte) (o Origin) {
	_ = json.Unmarshal(stored, &o) // what JSON returned, or nothing
	return o
}

// JSON returns the origin of the context as it is stored; nil if there is none.
func JSON(ctx context.Context) []byte {
	o, ok := ctx.Value(contextKey{}).(Origin)
	if !ok {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // five strings
	}
	return data
}
