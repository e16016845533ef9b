package turn

import (
	"context"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
)

// endTurn closes a turn with all effects of its end, in the caller's transaction, and queues the
// next one that is lined up. Every end of a turn uses it. ok is false if the turn was closed
// before.
func (s *Service) endTurn(ctx context.Context, tx *session.Tx, t session.Turn, e session.Ending) (ok bool, err error) {
	c, err := tx.ReadClosing(ctx, t)
	if err != nil {
		return false, err
	}
	if c.HasFiles {
		if e.Attachments, err = s.cfg.Files.Produced(ctx, tx.Tx, t.ID); err != nil {
			return false, err
		}
	}
	if ok, err = tx.EndTurn(ctx, c, e); err != nil || !ok {
		return ok, err
	}
	if e.Trigger == session.Cancel {
		if err := s.cancelOpenResponse(ctx, tx, t); err != nil {
			return false, err
		}
	}
	if c.HasCallbacks {
		if err := s.reportEvent(ctx, tx, t, ended[e.Trigger]); err != nil {
			return false, err
		}
	}
	next, queued, err := tx.Next(ctx)
	if err == nil && queued {
		err = s.insertJob(ctx, tx, next)
	}
	return true, err
}

// ended maps the ends of a turn to the types of callbacks.
var ended = map[session.Trigger]callback.Type{
	session.Complete: callback.Completed, session.Fail: callback.Failed, session.Cancel: callback.Canceled,
}

// reportEvent queues a delivery of the session's newest event for each callback of the turn. The
// jobs are inserted in the event's transaction.
func (s *Service) reportEvent(ctx context.Context, tx *session.Tx, t session.Turn, typ callback.Type) error {
	deliveries, err := s.cfg.Callbacks.Report(ctx, tx.Tx, t.ID, typ, tx.Head())
	if err != nil {
		return err
	}
	for _, d := range deliveries {
		if err := s.enqueueDelivery(ctx, tx.Tx, d); err != nil {
			return err
		}
	}
	if len(deliveries) > 0 {
		s.wakeAfter(tx, callbackQueue)
	}
	return nil
}
