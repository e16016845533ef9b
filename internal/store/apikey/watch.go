package apikey

import (
	"context"
	"errors"
	"strings"
)

// ErrDead is the cause when a context of While ended: the key is revoked or expired.
var ErrDead = errors.New("the API key is not valid any more")

// While returns a context that ends with ErrDead soon after the key does. The
// caller must call stop. Run must be running. The requests of signed-in members have no key: they
// end with their web session, which the server watches.
func (s *Store) While(ctx context.Context, id string) (_ context.Context, stop func()) {
	if strings.HasPrefix(id, MemberPrefix) {
		return context.WithCancel(ctx)
	}
	return s.watch.While(ctx, id)
}

// Run checks all keys with open contexts, twice a second and in one query, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	return s.watch.Run(ctx, s.log, "look for revoked keys", ErrDead, func(ctx context.Context, ids []string) ([]string, error) {
		dead, err := s.q.APIKeysDead(ctx, ids)
		for _, id := range dead {
			s.cache.forget(id)
		}
		return dead, err
	})
}
