package turn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// errPanicked fails a turn: another attempt would panic again.
var errPanicked = errors.New("the turn's worker panicked")

// failPanicked logs a panic of a turn's worker, with the values of the turn's credentials removed.
// It must be called by the deferred function that recovers.
func (s *Service) failPanicked(ctx context.Context, t session.Turn, redact func(string) string, p any) error {
	s.log.ErrorContext(ctx, "turn panicked", "session", t.SessionID, "turn", t.ID,
		"panic", redact(fmt.Sprint(p)), "stack", redact(string(debug.Stack())))
	return errors.Join(errPanicked, &agent.Failure{Code: event.InternalError, Message: "Internal error."})
}
