package call

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
)

// Once responds with 200 and the result of do. Under an Idempotency-Key, key, the same request gets
// the same response for a day and do runs once; about identifies the request, and contains no
// secret.
func Once(s *server.Server, w http.ResponseWriter, r *Request, key string, about any, do func(context.Context) (any, error)) error {
	return OnceAs(http.StatusOK, s, w, r, key, about, do)
}

// OnceAs is Once for a response with another status.
func OnceAs(
	success int, s *server.Server, w http.ResponseWriter, r *Request, key string, about any, do func(context.Context) (any, error),
) error {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	if r.Caller.Only != nil { // a token with another limit gets none of its answers
		about = []any{about, r.Caller.Only}
	}
	text, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("encode what a request is about: %w", err)
	}
	hash := sha256.Sum256(text)
	name := session.Once{Workspace: r.Caller.Workspace.ID, Route: r.Operation, Key: key, Hash: hash[:], Caller: r.Caller.Key}
	status, body, replayed, err := s.Sessions.Once(ctx, name, func(ctx context.Context) (int, []byte, error) {
		answer, err := do(ctx)
		if err != nil {
			return 0, nil, err
		}
		body, err := server.Encode(map[string]any{"data": answer})
		return success, body, err
	})
	if err != nil {
		return err
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	server.WriteBody(w, status, body)
	return nil
}
