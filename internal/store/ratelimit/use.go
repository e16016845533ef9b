package ratelimit

import (
	"context"
	"fmt"
	"math"
)

// KeyUse is how much of its limits a key uses now.
type KeyUse struct {
	Key                      string
	Messages, Calls, Streams int
}

// Uses returns the use of keys with these limits. The counts of streams are those of all replicas,
// at most a second old.
func (s *Store) Uses(ctx context.Context, keys []string, of Limits) ([]KeyUse, error) {
	rows, err := s.q.RatesOf(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read the use of keys: %w", err)
	}
	if err := s.refreshCounts(ctx); err != nil {
		return nil, err
	}
	list, at := make([]KeyUse, len(keys)), make(map[string]int, len(keys))
	for i, key := range keys {
		list[i], at[key] = KeyUse{Key: key, Streams: s.streams.count(key)}, i
	}
	for _, r := range rows {
		use := &list[at[r.KeyID]]
		if n := int(math.Ceil(r.Debt * float64(of.Of(Class(r.Class))) / minute)); Class(r.Class) == Messages {
			use.Messages = n
		} else {
			use.Calls = n
		}
	}
	return list, nil
}

// count returns the open streams of a key on all replicas.
func (t *streams) count(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.here[key] + t.elsewhere[key]
}
