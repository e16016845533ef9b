package client

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// maxWait is the longest pause between two tries, unless the server requests a longer one.
const maxWait = 30 * time.Second

// pacer spaces the attempts to resume, and gives up after Tries.
type pacer struct {
	c       *Client
	base    time.Duration // the server's pause, from retry: lines
	tries   int           // since the last progress
	started bool          // an attempt may have reached the server
}

// waitAttempt waits before the next attempt, or returns the error that ends them.
func (p *pacer) waitAttempt(ctx context.Context, broke error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.started = true
	if !canRetry(broke) || p.tries >= p.c.opt.Tries {
		return broke
	}
	base := cmp.Or(p.base, p.c.opt.Wait)
	wait := min(base<<p.tries, max(maxWait, base))
	wait += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(wait)) // ±20 %, so that clients do not reconnect at once
	if e, ok := errors.AsType[*Error](broke); ok {
		wait = max(wait, e.RetryAfter)
	}
	p.tries++
	p.c.opt.Retrying(Retry{Try: p.tries, Of: p.c.opt.Tries, Wait: wait, Err: broke})
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
