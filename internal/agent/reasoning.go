package agent

import (
	"context"
	"encoding/json"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// sealReasoning returns the reasoning of a reply as the log keeps it. A turn continues without
// reasoning that cannot be kept: it helps the model, but no promise depends on it.
func (r *run) sealReasoning(ctx context.Context, items []model.Reasoning) []byte {
	if len(items) == 0 || r.Seal == nil {
		return nil
	}
	plain, err := json.Marshal(items)
	if err == nil {
		plain, err = r.Seal(plain)
	}
	if err != nil {
		r.Log.WarnContext(ctx, "the reasoning of a reply is not kept", "err", err)
		return nil
	}
	return plain
}

// openReasoning is the reverse of sealReasoning.
func (r *run) openReasoning(ctx context.Context, reply event.Reply) (items []model.Reasoning) {
	if len(reply.Reasoning) == 0 || r.Open == nil {
		return nil
	}
	plain, err := r.Open(reply.Reasoning)
	if err == nil {
		err = json.Unmarshal(plain, &items)
	}
	if err != nil {
		r.Log.WarnContext(ctx, "the reasoning of a reply cannot be opened; the model continues without it", "err", err)
		return nil
	}
	return items
}
