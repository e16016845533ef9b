package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-server/parley/internal/outage"
)

const (
	// anchorEvery is the pause between two heads in a place, and the longest one between attempts.
	anchorEvery = time.Minute
	// anchorTimeout limits one attempt.
	anchorTimeout = 15 * time.Second
)

// HeadStore stores heads outside of the database, so that its owner cannot rewrite the log unseen.
type HeadStore interface {
	// StoreHead stores a head. It may receive the same head again.
	StoreHead(ctx context.Context, h Head) error
	// Check reports whether the place takes heads, as far as that shows without storing one: it
	// returns what it found, as the end of a sentence.
	Check(ctx context.Context) (found string, err error)
	// String names the place in the log, without secrets.
	String() string
}

// feedAnchor stores the newest head at a beat, at most once a minute and only if the chain has grown,
// until ctx ends. After a failure it tries again with the head of that time, which covers the log
// before it, too.
func (s *Store) feedAnchor(ctx context.Context, to HeadStore, beats <-chan struct{}, anchored *moment) {
	trouble := outage.New(s.opt.Log, "store the head of the chain in "+to.String())
	var stored Head
	var next time.Time
	var pause time.Duration
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-beats:
			if time.Now().Before(next) {
				continue
			}
		}
		newest, ok, err := s.Head(ctx) // the database's failures are not the place's: the chain logs them
		isNew := err == nil && ok && !bytes.Equal(newest.Hash, stored.Hash)
		if isNew {
			err = sendHead(ctx, to, newest)
			trouble.Note(ctx, err)
		}
		switch {
		case err != nil:
			pause = min(max(2*pause, time.Second), anchorEvery)
			next, retry = time.Now().Add(pause), time.After(pause)
			continue
		case isNew:
			stored, next = newest, time.Now().Add(anchorEvery)
		}
		anchored.mark()
		pause, retry = 0, nil
	}
}

// errNoAnswer is the cause of an attempt that took too long.
var errNoAnswer = fmt.Errorf("no answer within %v", anchorTimeout)

// sendHead stores a head in time.
func sendHead(ctx context.Context, to HeadStore, h Head) error {
	ctx, cancel := context.WithTimeoutCause(ctx, anchorTimeout, errNoAnswer)
	defer cancel()
	err := to.StoreHead(ctx, h)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}
